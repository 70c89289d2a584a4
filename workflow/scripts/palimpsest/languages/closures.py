"""Sums over all chains of weighted steps, in logarithms: no weight is too small to be kept."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping

import numpy as np
from numba import njit

from palimpsest.languages.structure import strongly_connected

POOR = 1e-250  # a float64 below may have lost digits
CHUNK = 4096  # entries that are summed at a time

Steps = Mapping[tuple[int, int], float]  # (from, to): log weight
Row = tuple[np.ndarray, np.ndarray]  # the ends of chains in ascending order, and their log weights


def chains(steps: Steps, starts: Iterable[int], kept: Collection[int]) -> dict[int, Row]:
    """The total weight of all chains from each start and each node above to the kept nodes.

    A chain may have no step, so a kept node is an end of its own chains.
    """
    above: dict[int, dict[int, float]] = defaultdict(dict)
    for (source, target), weight in steps.items():
        above[source][target] = weight
    rows: dict[int, Row] = {}
    for component in strongly_connected(above, starts):
        place = {node: index for index, node in enumerate(component)}
        within = np.full((len(component), len(component)), -np.inf)
        onward = []
        for node, index in place.items():
            own = [(np.array([node]), np.zeros(1))] if node in kept else []
            for target, weight in above[node].items() if node in above else ():
                if target in place:
                    within[index, place[target]] = weight
                else:
                    ends, weights = rows[target]
                    own.append((ends, weights + weight))
            onward.append(merged(own))
        if len(component) == 1 and within[0, 0] == -np.inf:
            rows[component[0]] = onward[0]
            continue
        ends = np.unique(np.concatenate([row[0] for row in onward]))
        first = np.full((len(component), len(ends)), -np.inf)
        for index, row in enumerate(onward):
            first[index, np.searchsorted(ends, row[0])] = row[1]
        sums = geometric_sum(np.exp(within))
        # All nodes lead to each other, so that no sum is 0.
        log_sums = log_geometric_sum(within) if (sums < POOR).any() else np.log(sums)
        total = log_product(log_sums, first)
        for node, index in place.items():
            some = total[index] > -np.inf
            rows[node] = ends[some], total[index, some]
    return rows


def merged(rows: Iterable[Row]) -> Row:
    """The sum of some rows."""
    rows = list(rows)
    if len(rows) == 1:
        return rows[0]
    if not rows:
        return np.zeros(0, np.int64), np.zeros(0)
    ends, place = np.unique(np.concatenate([row[0] for row in rows]), return_inverse=True)
    weights = np.full(len(ends), -np.inf)
    np.logaddexp.at(weights, place, np.concatenate([row[1] for row in rows]))
    return ends, weights


@njit(cache=True)
def geometric_sum(matrix):
    """I + M + M^2 + ...: the inverse of I - M by elimination.

    All terms but the pivots are sums of positive numbers, so that small entries have as many
    correct digits as large ones, unless they are below all floats.
    """
    total = matrix.copy()
    size = len(total)
    for pivot in range(size):
        again = 1 / (1 - total[pivot, pivot])
        for row in range(size):
            if row != pivot and total[row, pivot] != 0:
                times = total[row, pivot] * again
                for column in range(size):
                    total[row, column] += times * total[pivot, column]
                total[row, pivot] = times
        total[pivot] *= again
        total[pivot, pivot] = again
    return total


@njit(cache=True)
def log_geometric_sum(log_matrix):
    """log(I + M + M^2 + ...), from log M, however small; -inf where no power of M has an entry.

    It takes twenty times as long as `geometric_sum`.
    """
    total = log_matrix.copy()
    size = len(total)
    for pivot in range(size):
        again = -np.log1p(-np.exp(total[pivot, pivot]))
        for row in range(size):
            if row == pivot or total[row, pivot] == -np.inf:
                continue
            total[row, pivot] += again
            for column in range(size):
                added = total[row, pivot] + total[pivot, column]
                if column == pivot or added == -np.inf:
                    continue
                high, low = max(total[row, column], added), min(total[row, column], added)
                total[row, column] = high + np.log1p(np.exp(low - high))
        total[pivot] += again
        total[pivot, pivot] = again
    return total


def log_product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """log(A B), from log A and log B; exact also where a product is below all floats."""
    with np.errstate(divide="ignore", invalid="ignore"):
        of_rows = np.nan_to_num(left.max(axis=1, keepdims=True), neginf=0.0)
        of_columns = np.nan_to_num(right.max(axis=0, keepdims=True), neginf=0.0)
        linear = np.exp(left - of_rows) @ np.exp(right - of_columns)
        result = np.log(linear) + of_rows + of_columns
        poor = linear < POOR
        if poor.any():
            there = [(matrix > -np.inf).astype(np.float32) for matrix in (left, right)]
            rows, columns = np.nonzero(poor & (there[0] @ there[1] > 0))
            for begin in range(0, len(rows), CHUNK):
                some = slice(begin, begin + CHUNK)
                terms = left[rows[some]] + right[:, columns[some]].T
                result[rows[some], columns[some]] = np.logaddexp.reduce(terms, axis=1)
    return result


def log_add(weights: dict, key: object, log_weight: float) -> None:
    old = weights.get(key)
    if old is None:
        weights[key] = log_weight
    else:
        high, low = max(old, log_weight), min(old, log_weight)
        weights[key] = high + math.log1p(math.exp(low - high))
