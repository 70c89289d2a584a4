"""Exact probabilities of strings and of prefixes: sparse inside and left-corner sums, compiled.

The grammar is binarised from the left: a *node* stands for the beginning of a right-hand side
(`A -> B C D` gives the nodes `[B C]` and `[B C D]`), and rules that begin alike share their nodes.
What remains is one binary rule per node, of weight 1, and steps without a choice of place: from a
node, or from a symbol that stands alone, to the left-hand sides that it completes. Chains of such
steps, loops included, are summed once and for all by (I - U)^-1.

The chart is filled from the right end of the string to its left. For one beginning it goes through
the ends in order, and keeps only the entries that are not zero, as linked lists: the time it takes
is in proportion to the constituents that match, not to the cube of the length.

The probability of a string of a few hundred symbols is below what a float64 can hold. A number is
therefore a mantissa and an exponent of 2^64.

Source: Baker 1979 (inside); Jelinek and Lafferty 1991 (prefixes); Stolcke 1995 (closures).
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numba import njit

from palimpsest.languages.encoding import EncodedStrings
from palimpsest.languages.notation import Symbol
from palimpsest.languages.structure import Rule

UNIT = 2.0**-64
LOG_UNIT = math.log(UNIT)
CHART_FULL = -1.0
NONE = -1

Steps = Mapping[tuple[int, int], float]  # (from, to): probability


class InsideTables(NamedTuple):
    """A grammar as the chart reads it: symbols are terminals, then non-terminals, then nodes.

    Row `x` of a table is what stands between `first[x]` and `first[x + 1]`.
    """

    n_terminals: int
    n_symbols: int
    start: int
    # The symbols that a terminal or node `x` stands for by itself, and with what weight.
    closure_first: np.ndarray
    closure_symbol: np.ndarray
    closure_weight: np.ndarray
    # The nodes that go on from `x`, and the symbol that must come next.
    next_first: np.ndarray
    next_node: np.ndarray
    next_symbol: np.ndarray
    # The non-terminals that can begin with a terminal or node `x`, and with what weight.
    corner_first: np.ndarray
    corner_symbol: np.ndarray
    corner_weight: np.ndarray
    # Whether `x` is the start or some node ends in it, so that its entries will be looked up.
    looked_up: np.ndarray


class Workspace(NamedTuple):
    """Arrays that one string after another is scored in, cleared by each that ends well."""

    # Cells of the row that is being filled, [ends, symbols] flattened, before the closure.
    cell: np.ndarray
    cell_exponent: np.ndarray
    cell_next: np.ndarray  # the next symbol that is not zero in the same cell
    cell_first: np.ndarray  # [ends]
    # One cell after the closure, and the symbols that are not zero in it.
    closed: np.ndarray
    closed_exponent: np.ndarray
    closed_symbols: np.ndarray
    # Entries of all finished cells, linked by [begin, symbol].
    entry: np.ndarray
    entry_exponent: np.ndarray
    entry_end: np.ndarray
    entry_next: np.ndarray
    entry_first: np.ndarray
    # Probability of beginning with the rest of the string, [begin, symbol]; and its parts by node.
    prefix: np.ndarray
    prefix_exponent: np.ndarray
    part: np.ndarray
    part_exponent: np.ndarray
    part_symbols: np.ndarray


def log_probability(tables: InsideTables, strings: EncodedStrings) -> np.ndarray:
    """float64[n], nats: see `Grammar.log_probability`."""
    return _score(tables, strings, of_prefixes=False)


def log_prefix_probability(tables: InsideTables, strings: EncodedStrings) -> np.ndarray:
    """float64[n], nats: see `Grammar.log_prefix_probability`."""
    return _score(tables, strings, of_prefixes=True)


def _score(tables: InsideTables, strings: EncodedStrings, of_prefixes: bool) -> np.ndarray:
    first, copy_of = _distinct(strings)
    scores = _score_all(tables, strings.symbols, strings.offsets, first, of_prefixes)
    # Rounding may carry a sum of probabilities past 1 by a few units in the last place.
    return np.minimum(scores, 0.0)[copy_of]


def _distinct(strings: EncodedStrings) -> tuple[np.ndarray, np.ndarray]:
    """Where each distinct string first stands, and which of them every string is."""
    data, ends = strings.symbols.tobytes(), (2 * strings.offsets).tolist()
    seen: dict[bytes, int] = {}
    copy_of = [
        seen.setdefault(data[a:b], len(seen)) for a, b in zip(ends[:-1], ends[1:], strict=True)
    ]
    copy_of = np.array(copy_of, dtype=np.int64)
    return np.unique(copy_of, return_index=True)[1].astype(np.int64), copy_of


def tables(
    rules: Sequence[Rule], reachable: Sequence[str], terminals: Sequence[str]
) -> InsideTables:
    """Binarise the rules of `reachable`, whose first non-terminal is the start."""
    known = [Symbol(name, True) for name in terminals] + [Symbol(name, False) for name in reachable]
    place = {symbol: index for index, symbol in enumerate(known)}
    nodes: dict[tuple[int, int], int] = {}
    completes: dict[tuple[int, int], float] = defaultdict(float)
    begins: dict[tuple[int, int], float] = defaultdict(float)
    for rule in rules:
        lhs = place.get(Symbol(rule.lhs, False))
        if lhs is None:
            continue
        node, *rest = (place[symbol] for symbol in rule.rhs)
        begins[node, lhs] += rule.probability
        for symbol in rest:
            node = nodes.setdefault((node, symbol), len(known) + len(nodes))
            begins[node, lhs] += rule.probability
        completes[node, lhs] += rule.probability

    start = len(terminals)
    nonterminals = range(start, len(known))
    n_symbols = len(known) + len(nodes)
    goes_on = {left for left, _ in nodes}
    looked_up = {right for _, right in nodes}
    closure = _closed(completes, nonterminals, n_symbols)
    for symbol, row in enumerate(closure):
        row[symbol] = 1.0
        for unused in row.keys() - goes_on - looked_up - {start}:
            del row[unused]
    onward: list[dict[int, int]] = [{} for _ in range(n_symbols)]
    for (left, right), node in nodes.items():
        onward[left][node] = right
    return InsideTables(
        len(terminals),
        n_symbols,
        start,
        *_flat(closure, np.float64),
        *_flat(onward, np.int32),
        *_flat(_closed(begins, nonterminals, n_symbols), np.float64),
        np.isin(np.arange(n_symbols), [*looked_up, start]),
    )


def _closed(steps: Steps, nonterminals: range, n_symbols: int) -> list[dict[int, float]]:
    """For every terminal and node, the total weight of the chains of steps to each non-terminal.

    The rows of non-terminals are left empty: nothing ever enters a chain there.
    """
    matrix = np.zeros((len(nonterminals), len(nonterminals)))
    for (source, target), probability in steps.items():
        if source in nonterminals:
            matrix[target - nonterminals.start, source - nonterminals.start] = probability
    chains = _geometric_sum(matrix)
    closed: list[dict[int, float]] = [defaultdict(float) for _ in range(n_symbols)]
    for (source, target), probability in steps.items():
        if source in nonterminals:
            continue
        column = chains[:, target - nonterminals.start]
        for index in np.flatnonzero(column):
            closed[source][nonterminals.start + int(index)] += probability * column[index]
    return closed


def _geometric_sum(matrix: np.ndarray) -> np.ndarray:
    """I + M + M^2 + ..., with exact zeros wherever no power of M has an entry."""
    identity = np.eye(len(matrix))
    reached = identity + matrix > 0
    while True:
        further = (reached.astype(np.float32) @ reached.astype(np.float32)) > 0
        if (further == reached).all():
            return np.where(reached, np.linalg.inv(identity - matrix), 0.0)
        reached = further


def _flat(
    rows: Sequence[Mapping[int, float]], dtype: type
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows as three arrays: where each row begins, the keys, and the values."""
    first = np.cumsum([0, *map(len, rows)]).astype(np.int32)
    keys = np.array([key for row in rows for key in row], dtype=np.int32)
    values = np.array([value for row in rows for value in row.values()], dtype=dtype)
    return first, keys, values


@njit(cache=True)
def _score_all(tables, symbols, offsets, which, of_prefixes):
    """Log probabilities of the strings at `which`, one after another in the same workspace."""
    longest = 0
    for string in which:
        longest = max(longest, offsets[string + 1] - offsets[string])
    room = 4096
    work = _workspace(longest, tables.n_symbols, room)
    scores = np.empty(which.size)
    for index in range(which.size):
        string = symbols[offsets[which[index]] : offsets[which[index] + 1]]
        mantissa, exponent = _score_one(tables, string, work, of_prefixes)
        while mantissa == CHART_FULL:
            room *= 2
            work = _workspace(longest, tables.n_symbols, room)
            mantissa, exponent = _score_one(tables, string, work, of_prefixes)
        if mantissa > 0:
            scores[index] = math.log(mantissa) - exponent * LOG_UNIT
        else:
            scores[index] = -np.inf
    return scores


@njit(cache=True)
def _workspace(longest, n_symbols, room):
    cells = (longest + 1) * n_symbols
    return Workspace(
        np.zeros(cells),
        np.zeros(cells, np.int64),
        np.zeros(cells, np.int32),
        np.full(longest + 1, NONE, np.int32),
        np.zeros(n_symbols),
        np.zeros(n_symbols, np.int64),
        np.zeros(n_symbols, np.int32),
        np.zeros(room),
        np.zeros(room, np.int64),
        np.zeros(room, np.int32),
        np.zeros(room, np.int32),
        np.full(cells, NONE, np.int32),
        np.zeros(cells),
        np.zeros(cells, np.int64),
        np.zeros(n_symbols),
        np.zeros(n_symbols, np.int64),
        np.zeros(n_symbols, np.int32),
    )


@njit(cache=True)
def _score_one(tables, string, work, of_prefixes):
    """Probability of a string, or of all strings that begin with it: mantissa and exponent."""
    if string.size == 0:
        return (1.0 if of_prefixes else 0.0), 0
    for symbol in string:
        if symbol >= tables.n_terminals:
            return 0.0, 0
    work.entry_first[: string.size * tables.n_symbols] = NONE
    work.prefix[: string.size * tables.n_symbols] = 0.0
    if not _fill(tables, string, work, of_prefixes):
        return CHART_FULL, 0
    if of_prefixes:
        return work.prefix[tables.start], work.prefix_exponent[tables.start]
    # The longest constituent of a row is entered last, so it stands first in its list.
    entry = work.entry_first[tables.start]
    if entry == NONE or work.entry_end[entry] != string.size:
        return 0.0, 0
    return work.entry[entry], work.entry_exponent[entry]


@njit(cache=True)
def _fill(tables, string, work, of_prefixes):
    """Enter every constituent of the string, from right to left; False if there is no room.

    One long function over local names: handing on whole tuples of arrays costs more than the work.
    """
    width = tables.n_symbols
    next_first, next_node, next_symbol = tables.next_first, tables.next_node, tables.next_symbol
    looked_up = tables.looked_up
    cell, cell_exponent = work.cell, work.cell_exponent
    cell_next, cell_first = work.cell_next, work.cell_first
    closed, closed_exponent, closed_symbols = (
        work.closed,
        work.closed_exponent,
        work.closed_symbols,
    )
    entry, entry_exponent, entry_end = work.entry, work.entry_exponent, work.entry_end
    entry_next, entry_first = work.entry_next, work.entry_first
    prefix, prefix_exponent = work.prefix, work.prefix_exponent
    part, part_exponent, part_symbols = work.part, work.part_exponent, work.part_symbols

    n_entries = 0
    for begin in range(string.size - 1, -1, -1):
        n_parts = 0
        end, furthest = begin, begin + 1
        at = furthest * width + string[begin]
        cell[at], cell_exponent[at], cell_next[at] = 1.0, 0, NONE
        cell_first[furthest] = string[begin]
        while end < furthest:
            end += 1
            if cell_first[end] == NONE:
                continue
            n_closed = _close(
                tables.closure_first,
                tables.closure_symbol,
                tables.closure_weight,
                cell,
                cell_exponent,
                cell_next,
                cell_first[end],
                end * width,
                closed,
                closed_exponent,
                closed_symbols,
            )
            cell_first[end] = NONE
            if n_entries + n_closed > entry.size:
                return False
            for index in range(n_closed):
                symbol = closed_symbols[index]
                mantissa, exponent = _normal(closed[symbol], closed_exponent[symbol])
                closed[symbol] = 0.0
                if looked_up[symbol]:
                    entry[n_entries], entry_exponent[n_entries] = mantissa, exponent
                    entry_end[n_entries] = end
                    entry_next[n_entries] = entry_first[begin * width + symbol]
                    entry_first[begin * width + symbol] = n_entries
                    n_entries += 1
                if end == string.size:
                    continue
                for rule in range(next_first[symbol], next_first[symbol + 1]):
                    node = next_node[rule]
                    right = end * width + next_symbol[rule]
                    found = entry_first[right]
                    while found != NONE:
                        far = entry_end[found]
                        furthest = max(furthest, far)
                        at = far * width + node
                        if cell[at] == 0:
                            cell_next[at] = cell_first[far]
                            cell_first[far] = node
                        _add(
                            cell,
                            cell_exponent,
                            at,
                            mantissa * entry[found],
                            exponent + entry_exponent[found],
                        )
                        found = entry_next[found]
                    if of_prefixes and prefix[right] > 0:
                        if part[node] == 0:
                            part_symbols[n_parts] = node
                            n_parts += 1
                        _add(
                            part,
                            part_exponent,
                            node,
                            mantissa * prefix[right],
                            exponent + prefix_exponent[right],
                        )
        if not of_prefixes:
            continue
        if begin == string.size - 1:
            symbol = np.int64(string[begin])
            prefix[begin * width + symbol], prefix_exponent[begin * width + symbol] = 1.0, 0
            part[symbol], part_exponent[symbol], part_symbols[n_parts] = 1.0, 0, symbol
            n_parts += 1
        _climb(
            tables.corner_first,
            tables.corner_symbol,
            tables.corner_weight,
            part,
            part_exponent,
            part_symbols,
            n_parts,
            prefix,
            prefix_exponent,
            begin * width,
        )
    return True


@njit(cache=True)
def _close(
    first,
    targets,
    weights,
    cells,
    exponents,
    following,
    symbol,
    row,
    closed,
    closed_exponent,
    found,
):
    """Sum the chains of steps in the cell at `row`; writes the symbols it `found`, and their number.

    `symbol` is the first that is not zero, and `following` leads to the others.
    """
    n_found = 0
    while symbol != NONE:
        mantissa, exponent = cells[row + symbol], exponents[row + symbol]
        cells[row + symbol] = 0.0
        for step in range(first[symbol], first[symbol + 1]):
            target = targets[step]
            if closed[target] == 0:
                found[n_found] = target
                n_found += 1
            _add(closed, closed_exponent, target, mantissa * weights[step], exponent)
        symbol = following[row + symbol]
    return n_found


@njit(cache=True)
def _climb(first, targets, weights, part, part_exponent, symbols, n, prefix, prefix_exponent, row):
    """Carry the parts of one row up all chains of left corners, and clear them."""
    for index in range(n):
        symbol = symbols[index]
        mantissa, exponent = part[symbol], part_exponent[symbol]
        part[symbol] = 0.0
        for step in range(first[symbol], first[symbol + 1]):
            at = row + targets[step]
            _add(prefix, prefix_exponent, at, mantissa * weights[step], exponent)


@njit(cache=True)
def _add(mantissas, exponents, at, mantissa, exponent):
    """Add to a number; what is 2^-64 of the other or less is lost, as it would be in a float."""
    mantissa, exponent = _normal(mantissa, exponent)
    apart = exponent - exponents[at]
    if mantissas[at] == 0 or apart > 1:
        mantissas[at] = mantissa
        exponents[at] = exponent
    elif apart == 0:
        mantissas[at] += mantissa
    elif apart == 1:
        mantissas[at] = mantissas[at] * UNIT + mantissa
        exponents[at] = exponent
    elif apart == -1:
        mantissas[at] += mantissa * UNIT


@njit(cache=True)
def _normal(mantissa, exponent):
    """The same number with a mantissa of 2^-64 to 1, or above 1 if the exponent is 0."""
    while 0 < mantissa < UNIT:
        mantissa /= UNIT
        exponent -= 1
    while mantissa > 1 and exponent < 0:
        mantissa *= UNIT
        exponent += 1
    return mantissa, exponent
