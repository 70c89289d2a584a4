"""Mutual information between neurons, estimated from the nearest neighbours of samples.

Every pair of neurons is a cloud of points in a plane. The distance of a point to its k-th nearest
neighbour is compared with the numbers of points that are as near in each coordinate alone.

Two choices are ours. Each neuron is divided by its standard deviation first, unless `standardise`
is false, as in the paper's algorithm 3: mutual information does not depend on the scale, but the
estimate does where two neurons have very different ones. And where activations are equal (zeros of
a ReLU), a tiny seeded noise makes them differ, because the estimator assumes that no two distances
are equal.

Source: the paper on information measures of neurons, appendix A.2 and algorithm 3; Kraskov,
Stögbauer and Grassberger, Estimating mutual information (2004), first estimator.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from palimpsest.allowed import SEEDS, WHOLE, checked_number
from palimpsest.arguments import Made, takes
from palimpsest.errors import UserError
from palimpsest.information.neurons import (
    MOST_COPIES,
    CopiesWarning,
    checked,
    is_degenerate,
    share_of_copies,
)
from palimpsest.lazy_import import lazy_import
from palimpsest.short_repr import short_repr
from palimpsest.statistics import power_of_two

pd = lazy_import("pandas")

NEIGHBOURS = 3
NOISE = 1e-10  # of equal activations, in standard deviations
# Points of a column of the search; the fastest of 25 to 100 for 2,500 samples
SAMPLES_PER_COLUMN = 75
PAIRS_OF_A_TASK = 64
PAIR_BYTES = 280  # of a row of the table `pairs`, twice: tables of sites are joined
# Values that are compared at once, and how often, before a binary search
WIDTH, WINDOWS = 64, 2


class Pairs(NamedTuple):
    """Pairs of neurons: the numbers int[pairs] of the first and of the second neuron."""

    first: np.ndarray
    second: np.ndarray

    __repr__ = short_repr

    def to_frame(self, mutual_information: ArrayLike | None = None) -> pd.DataFrame:
        """A row per pair: `first` and `second`, and `mutual_information` if it is given."""
        found = {} if mutual_information is None else {"mutual_information": mutual_information}
        return pd.DataFrame({**self._asdict(), **found})


def mutual_information(
    activations: ArrayLike,
    k: int = NEIGHBOURS,
    seed: int = 0,
    threads: int | None = None,
    standardise: bool = True,
) -> np.ndarray:
    """The mutual information of all pairs of neurons in nats, float64[neurons, neurons].

    Parameters
    ----------
    activations : float[samples, neurons]; all other numbers are converted to float64 first
    k : number of the nearest neighbour, from 1 to the number of samples - 1
    seed : of the noise that makes equal activations differ, 0 or more; others get no noise
    threads : number of threads; None takes those that this process may use
    standardise : whether each neuron is divided by its standard deviation first; the paper's
        algorithm 3 does not

    The result is symmetric. It is NaN on the diagonal, and for neurons that are constant or not
    finite. An estimate can be below 0 where two neurons are nearly independent.

    Raises `UserError` if there are no neurons, or not more than k samples; if k, the seed or the
    number of threads is not allowed; or if all pairs do not fit into memory. The message then names
    the number of pairs that do.

    Warns with `CopiesWarning` if more than 5 % of the samples are copies of each other. A copy is a
    near neighbour in all neurons at once, whatever they have to do with each other: of 256 samples
    of independent neurons, the estimate rises by 0.02 nats if 5 % occur more than once, by 0.04 if
    10 % do, and by 0.2 if 38 % do.
    """
    values = checked(activations, checked_number("k", k, WHOLE) + 1)
    n_neurons = values.shape[1]
    pairs = all_pairs(n_neurons)
    found = np.full((n_neurons, n_neurons), np.nan)
    found[pairs] = mutual_information_of_pairs(values, pairs, k, seed, threads, standardise)
    found.T[pairs] = found[pairs]
    return found


@takes(pairs=Made(Pairs, "information.sampled_pairs(n_neurons, most)"))
def mutual_information_of_pairs(
    activations: ArrayLike,
    pairs: Pairs,
    k: int = NEIGHBOURS,
    seed: int = 0,
    threads: int | None = None,
    standardise: bool = True,
) -> np.ndarray:
    """The mutual information of some pairs of neurons in nats, float64[pairs].

    Parameters, errors and the warning are those of `mutual_information`. A pair's value does not
    depend on the other pairs.
    """
    k = checked_number("k", k, WHOLE)
    checked_number("seed", seed, SEEDS)
    if threads is not None:
        checked_number("threads", threads, WHOLE)
    values = checked(activations, k + 1)
    usable = ~is_degenerate(values)
    first, second = (_checked_neurons(numbers, len(usable)) for numbers in pairs)
    if first.shape != second.shape or (first == second).any():
        raise UserError("pairs: must be as many first as second neurons, different in each pair")
    found = np.full(len(first), np.nan)
    wanted = np.flatnonzero(usable[first] & usable[second])
    if not len(wanted):
        return found
    neurons = np.unique([first[wanted], second[wanted]])
    _warn_of_copies(values[:, neurons])
    place = np.zeros(len(usable), dtype=np.int64)
    place[neurons] = np.arange(len(neurons))
    tables = _Tables.of(_distinct(values, neurons, seed, standardise))
    first, second = place[first[wanted]], place[second[wanted]]
    psi = _digamma(len(values))
    results = np.empty(len(wanted))

    def work(begin: int) -> None:
        part = slice(begin, begin + PAIRS_OF_A_TASK)
        _some_pairs(*tables, psi, k, first[part], second[part], results[part])

    with ThreadPoolExecutor(threads or len(os.sched_getaffinity(0))) as pool:
        list(pool.map(work, range(0, len(wanted), PAIRS_OF_A_TASK)))
    found[wanted] = results
    return found


def _checked_neurons(numbers: ArrayLike, n_neurons: int) -> np.ndarray:
    """Numbers of neurons, int64[pairs]; `UserError` unless they are whole and below `n_neurons`."""
    numbers = np.asarray(numbers)
    if numbers.size and numbers.dtype.kind not in "iu":
        raise UserError(f"pairs: are of type {numbers.dtype} and must be numbers of neurons")
    if ((numbers < 0) | (numbers >= n_neurons)).any():
        raise UserError(f"pairs: must be numbers of neurons, from 0 to {n_neurons - 1}")
    return numbers.astype(np.int64)


def _warn_of_copies(values: np.ndarray) -> None:
    """Warn if many samples float[samples, neurons] are copies. No neuron may be degenerate."""
    if (share := share_of_copies(values)) > MOST_COPIES:
        warnings.warn(
            f"activations: {share:.1%} of the {len(values)} samples are copies of another one, "
            "which makes mutual information too large; give each sample once",
            CopiesWarning,
            stacklevel=3,
        )


def all_pairs(n_neurons: int) -> Pairs:
    """All pairs of neurons, in order.

    Raises `UserError` if the table of all pairs does not fit into half of the free memory. The
    message names the number of pairs that do.
    """
    check_memory([n_neurons])
    return Pairs(*np.triu_indices(n_neurons, 1))


def sampled_pairs(n_neurons: int, most: int, seed: int = 0) -> Pairs:
    """All pairs of neurons or, if there are more than `most`, a random sample of that many.

    The pairs are distinct and in order. Raises `UserError` as `all_pairs` does, or if a number is
    not allowed.
    """
    checked_number("n_neurons", n_neurons, WHOLE)
    checked_number("most", most, WHOLE)
    checked_number("seed", seed, SEEDS)
    n_pairs = number_of_pairs(n_neurons)
    if n_pairs <= most:
        return all_pairs(n_neurons)
    check_memory([n_neurons], most)
    numbers = np.sort(np.random.default_rng(seed).choice(n_pairs, most, replace=False))
    # Pair number p has the second neuron j if j (j - 1) / 2 <= p < (j + 1) j / 2.
    second = ((1 + np.sqrt(1 + 8 * numbers)) / 2).astype(np.int64)
    second -= second * (second - 1) // 2 > numbers
    second += (second + 1) * second // 2 <= numbers
    return Pairs(numbers - second * (second - 1) // 2, second)


def check_memory(widths: Sequence[int], most: float = np.inf) -> None:
    """Raise `UserError` if the tables of pairs do not fit into half of the free memory.

    Free is what Linux calls available, which includes the cache of files. `widths` are the numbers
    of neurons of the sites, whose tables are held at the same time, each with `most` pairs at most.
    """
    free = available_memory() // 2
    needed = bytes_of_pairs(widths, most)
    if needed <= free:
        return
    fit, too_many = 0, max(number_of_pairs(n) for n in widths)
    while too_many - fit > 1:
        middle = (fit + too_many) // 2
        fits = bytes_of_pairs(widths, middle) <= free
        fit, too_many = (middle, too_many) if fits else (fit, middle)
    n_pairs = sum(min(number_of_pairs(n), most) for n in widths)
    where = "of" if len(widths) == 1 else f"at {len(widths)} sites of up to"
    raise UserError(
        f"mutual information: {n_pairs:,.0f} pairs {where} {max(widths):,} neurons need "
        f"{needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB may be used; take at most {fit:,} sampled "
        "pairs" + (" of a site" if len(widths) > 1 else "")
    )


def bytes_of_pairs(widths: Sequence[int], most: float) -> float:
    """The memory that at most `most` pairs at each site take; see `check_memory`."""
    numbers = [min(number_of_pairs(n), most) for n in widths]
    # A sample of more than one pair in fifty is drawn by shuffling the numbers of all pairs.
    shuffled = [
        8 * number_of_pairs(n) for n, own in zip(widths, numbers, strict=True)
        if 50 * own > number_of_pairs(n)
    ]  # fmt: skip
    return max(shuffled, default=0) + PAIR_BYTES * sum(numbers)


def number_of_pairs(n_neurons: int) -> int:
    return n_neurons * (n_neurons - 1) // 2


def available_memory() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    (kibibytes,) = (line.split()[1] for line in lines if line.startswith("MemAvailable:"))
    return 1024 * int(kibibytes)


def _digamma(n: int) -> np.ndarray:
    """The digamma function of 0 (not used) to n, float64[n + 1]."""
    from scipy.special import digamma

    return np.concatenate([[0.0], digamma(np.arange(1, n + 1))])


def _distinct(values: np.ndarray, neurons: np.ndarray, seed: int, standardise: bool) -> np.ndarray:
    """Some neurons float64[neurons, samples] with mean 0 and without equal values.

    Their standard deviations are 1 if `standardise`, or else all are scaled alike.
    """
    # By a power of two, so that nothing is rounded, and no square is too large or too small.
    common = 1.0 if standardise else power_of_two(values[:, neurons].astype(float))
    rows = []
    for neuron in neurons:
        own = values[:, neuron].astype(float)
        own /= power_of_two(own) if standardise else common
        # Around 0, where the noise is not rounded away
        own -= own.mean()
        spread = own.std()
        if standardise:
            own, spread = own / spread, 1.0
        if len(np.unique(own)) < len(own):
            noise = np.random.default_rng([seed, neuron]).normal(size=len(own))
            own += NOISE * spread * noise
        rows.append(own)
    return np.array(rows)


class _Tables(NamedTuple):
    """What the search needs of each neuron, whatever the other neuron of a pair is.

    `ordered` float64[neurons, samples] are the sorted values, and `orders` and `ranks` int32
    [neurons, samples] say which sample has a rank, and which rank a sample has. Samples are cut
    into columns by their rank: `column` int32[samples] is the column of a rank, and `begins` int64
    [columns + 1] is the first rank of each column.
    """

    ordered: np.ndarray
    orders: np.ndarray
    ranks: np.ndarray
    column: np.ndarray
    begins: np.ndarray

    @classmethod
    def of(cls, values: np.ndarray) -> _Tables:
        """From float64[neurons, samples]."""
        n = values.shape[1]
        orders = np.argsort(values, axis=1, kind="stable").astype(np.int32)
        ranks = np.empty_like(orders)
        np.put_along_axis(ranks, orders, np.arange(n, dtype=np.int32)[None], axis=1)
        n_columns = max(1, round(n / SAMPLES_PER_COLUMN))
        begins = np.arange(n_columns + 1) * n // n_columns
        column = np.repeat(np.arange(n_columns, dtype=np.int32), np.diff(begins))
        return cls(np.take_along_axis(values, orders, axis=1), orders, ranks, column, begins)


@njit(cache=True, nogil=True)
def _some_pairs(ordered, orders, ranks, column, begins, psi, k, first, second, results):
    """The estimates of some pairs, written into `results`."""
    n = ordered.shape[1]
    step = 1  # the first step of a binary search
    while 2 * step < n:
        step *= 2
    # After the samples come infinite values, so that no search needs to look for the end.
    size = n + 2 * step + (WINDOWS + 1) * WIDTH
    # Four arrays and not the rows of one, which Numba would read more slowly.
    x_up, x_down = np.full(size, np.inf), np.full(size, np.inf)
    y_up, y_down = np.full(size, np.inf), np.full(size, np.inf)
    room = np.empty((2, n))
    fill = np.empty(len(begins), np.int64)
    nearest = np.empty(k)
    for pair in range(len(first)):
        xs, ys = ordered[first[pair]], ordered[second[pair]]
        x_up[:n], y_up[:n] = xs, ys
        # Mirrored, so that a search downwards is a search upwards.
        x_down[:n], y_down[:n] = -xs[::-1], -ys[::-1]
        x_ranks, y_order = ranks[first[pair]], orders[second[pair]]
        _sort_into_columns(xs, ys, x_ranks, y_order, column, begins, fill, room)
        fill[:] = begins
        total = 0.0
        for y_rank in range(n):
            x_rank = x_ranks[y_order[y_rank]]
            x, y = xs[x_rank], ys[y_rank]
            radius = _radius(xs, x, y, column[x_rank], begins, fill, room, nearest)
            from_x, from_y = n - 1 - x_rank, n - 1 - y_rank
            n_x = _n_above(x_up, x_rank, radius, step) + _n_above(x_down, from_x, radius, step)
            n_y = _n_above(y_up, y_rank, radius, step) + _n_above(y_down, from_y, radius, step)
            # The point itself is counted in both.
            total += psi[n_x + 1] + psi[n_y + 1]
        results[pair] = psi[k] + psi[n] - total / n


@njit(cache=True, nogil=True)
def _sort_into_columns(xs, ys, x_ranks, y_order, column, begins, fill, room):
    """Put the points into `room`, column after column, each in the order of y."""
    fill[:] = begins
    for y_rank in range(len(y_order)):
        x_rank = x_ranks[y_order[y_rank]]
        own = column[x_rank]
        room[0, fill[own]], room[1, fill[own]] = xs[x_rank], ys[y_rank]
        fill[own] += 1


@njit(cache=True, nogil=True, inline="always")
def _radius(xs, x, y, own, begins, fill, room, nearest):
    """The distance of a point (x, y) to its k-th nearest neighbour.

    Points are visited in the order of y: `fill[c]` is the first point of column c that was not
    visited. So the search goes up and down from there, in the point's own column and then in the
    columns next to it, until a column is farther away than the k-th neighbour so far.
    """
    x_of, y_of, last = room[0], room[1], len(nearest) - 1
    nearest[:] = np.inf
    place = fill[own]
    fill[own] = place + 1
    _search(x_of, y_of, x, y, place, begins[own], begins[own + 1], place + 1, nearest)
    for other in range(own + 1, len(begins) - 1):
        if xs[begins[other]] - x >= nearest[last]:
            break
        place = fill[other]
        _search(x_of, y_of, x, y, place, begins[other], begins[other + 1], place, nearest)
    for other in range(own - 1, -1, -1):
        if x - xs[begins[other + 1] - 1] >= nearest[last]:
            break
        place = fill[other]
        _search(x_of, y_of, x, y, place, begins[other], begins[other + 1], place, nearest)
    return nearest[last]


@njit(cache=True, nogil=True, inline="always")
def _n_above(ordered, rank, radius, step):
    """How many values above the one at `rank` are nearer than the radius.

    `ordered` is sorted and ends with infinite values. Differences are compared, and not values with
    the rounded sum of a value and the radius. Most values are near, so some windows are counted as
    a whole, which is faster than a search.
    """
    value = ordered[rank]
    at, width = np.uint64(rank + 1), np.uint64(WIDTH)  # unsigned: no test for a negative index
    for window in range(WINDOWS):
        inside = 0
        for j in range(WIDTH):
            inside += ordered[at + np.uint64(j)] - value < radius
        if inside < WIDTH:
            return WIDTH * window + inside
        at += width
    at -= np.uint64(1)  # the last value that is known to be inside
    step = np.uint64(step)
    while step > 0:
        at += step * np.uint64(ordered[at + step] - value < radius)
        step = step >> np.uint64(1)
    return np.int64(at) - rank


@njit(cache=True, nogil=True, inline="always")
def _search(x_of, y_of, x, y, below, first, after, above, nearest):
    """Put the points of a column that are nearer than the k-th one into `nearest`.

    The points [first, below) are below the visited point, and [above, after) are not.
    """
    k = len(nearest)
    at = above
    while at < after and y_of[at] - y < nearest[k - 1]:
        _keep(max(y_of[at] - y, abs(x_of[at] - x)), nearest)
        at += 1
    at = below - 1
    while at >= first and y - y_of[at] < nearest[k - 1]:
        _keep(max(y - y_of[at], abs(x_of[at] - x)), nearest)
        at -= 1


@njit(cache=True, nogil=True, inline="always")
def _keep(distance, nearest):
    """Insert a distance into the sorted k smallest ones, if it is among them."""
    at = len(nearest) - 1
    if distance >= nearest[at]:
        return
    while at > 0 and nearest[at - 1] > distance:
        nearest[at] = nearest[at - 1]
        at -= 1
    nearest[at] = distance
