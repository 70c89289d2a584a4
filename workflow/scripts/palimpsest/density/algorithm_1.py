"""The density from nearest neighbours and a random sample, without the sum over the corpus.

The corpus is read once. Meanwhile the k nearest vectors of every query are kept, and the vectors of
the first sample. Neighbours that another program found take the place of the search; then only the
sample is read. Memory grows with the numbers of queries, of neighbours and of samples, and not with
the corpus.

Sources: LMD3: Language Model Data Density Dependence, section 4.2, algorithm 1 and appendix A.1;
Karppa et al., DEANN: Speeding up kernel-density estimation using approximate nearest neighbor
search (2022).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import shown
from palimpsest.density.distances import (
    POINTS_AT_ONCE,
    QUERIES_AT_ONCE,
    Corpus,
    checked,
    squared_distances,
)
from palimpsest.density.kernel_values import (
    LogSums,
    Setting,
    checked_setting,
    log_kernel_at,
    log_of_mean,
)
from palimpsest.density.kinds import GAUSSIAN
from palimpsest.density.neighbours import Index, Neighbours
from palimpsest.density.sizes import IVF, Approximation
from palimpsest.density.vectors_on_disk import InMemory, Kept, Shards
from palimpsest.errors import UserError
from palimpsest.lazy_import import lazy_import
from palimpsest.short_repr import short_repr

pd = lazy_import("pandas")

# The largest error of a given distance: that of float32, or of a search in half precision
TOLERANCE = 2e-3


class Parts(NamedTuple):
    """The parts of an approximate density: float64[Q] each.

    `local` is the density over the k nearest neighbours, `random` that over the random sample, and
    `combined` is their mean, weighted by k and by the number of other points of the corpus.
    """

    local: np.ndarray
    random: np.ndarray
    combined: np.ndarray

    __repr__ = short_repr

    def to_frame(self, string_id: ArrayLike | None = None) -> pd.DataFrame:
        """A row per query: `string_id` (by default its number), and the three densities."""
        names = np.arange(len(self.combined)) if string_id is None else string_id
        return pd.DataFrame({"string_id": names, **self._asdict()})


class Reading(NamedTuple):
    """What was kept while a corpus was read once.

    `nearest` are the neighbours, None if they were not searched. `sample` float[m, D] are the
    vectors of some rows. `log_densities` are the logs float64[Q] of the exact densities, for each
    kernel and bandwidth that was asked for.
    """

    nearest: Neighbours | None
    sample: np.ndarray
    log_densities: list[np.ndarray]


def parts_of_density(
    queries: ArrayLike,
    corpus: ArrayLike | Shards,
    bandwidth: float,
    kernel: str = GAUSSIAN,
    approximation: Approximation | None = None,
    neighbours: Neighbours | tuple[ArrayLike, ArrayLike] | None = None,
) -> Parts:
    """The local and the random part of the approximate density, and both together.

    The combination is unbiased. The sum over the corpus is not taken.

    Parameters
    ----------
    queries, corpus, bandwidth, kernel : as in `kernel_density`; the corpus can also be `Shards`
    approximation : its default without one
    neighbours : at least k nearest points of each query that another program found: distances
        float[Q, k or more], ascending, and rows int[Q, k or more] of the corpus; they are trusted

    Raises `UserError` for the reasons in `kernel_density`, if neighbours are too few, or if they
    are not of this corpus and these queries.

    Source: LMD3, algorithm 1.
    """
    asked = Approximation() if approximation is None else approximation
    (of_setting,) = log_parts_of_densities(
        queries, corpus, [(kernel, bandwidth)], asked, neighbours
    )
    return Parts(*map(np.exp, of_setting))


def log_parts_of_densities(
    queries: ArrayLike,
    corpus: ArrayLike | Corpus,
    settings: Sequence[Setting],
    asked: Approximation,
    neighbours: Neighbours | tuple[ArrayLike, ArrayLike] | None = None,
) -> list[Parts]:
    """The logs of the parts for several kernels and bandwidths, also where a part is too small.

    All of them share the neighbours and the samples.
    """
    settings = [checked_setting(*setting) for setting in settings]
    if not isinstance(asked, Approximation):
        raise UserError(
            f"approximation: is {shown(asked)} and must be an Approximation, such as "
            "Approximation(k=100, m1=10000, m2=1000)"
        )
    queries, corpus = opened(queries, corpus)
    asked.check(corpus.n)
    rows = first_sample(asked, corpus.n)
    if neighbours is None and asked.index == IVF:
        if not isinstance(corpus, InMemory):
            raise UserError("index: ivf needs a corpus in memory; choose exact, or give neighbours")
        index = Index(corpus.vectors, asked.index, asked.seed)
        neighbours = Neighbours(*index.search(queries, asked.k))
    elif neighbours is not None:
        neighbours = checked_neighbours_of(neighbours, len(queries), corpus.n, asked.k)
    read = read_once(queries, corpus, rows, asked.k, given=neighbours)
    return combined_parts(queries, corpus.n, settings, asked, read.nearest, rows, read.sample)


def opened(queries: ArrayLike, corpus: ArrayLike | Corpus) -> tuple[np.ndarray, Corpus]:
    """Queries and a corpus that can be read, of one type; `UserError` as `distances.checked`."""
    if isinstance(corpus, np.ndarray) or not hasattr(corpus, "blocks"):
        queries, corpus = checked(queries=queries, corpus=corpus)
        return queries, InMemory(corpus)
    (queries,) = checked(queries=queries)
    if queries.shape[1] != corpus.width:
        raise UserError(
            f"queries: have {queries.shape[1]} dimensions, and the corpus {corpus.width}; embed "
            "both with one model"
        )
    return queries.astype(corpus.dtype, copy=False), corpus


def first_sample(asked: Approximation, n: int) -> np.ndarray:
    """The rows int64[min(m1, n)] of the first sample of a corpus of n points, in random order."""
    chance = np.random.default_rng([asked.seed, 1])
    return chance.choice(n, min(asked.m1, n), replace=False)


def checked_neighbours_of(
    neighbours: tuple[ArrayLike, ArrayLike], n_queries: int, n: int, k: int
) -> Neighbours:
    """The k nearest of neighbours that another program found; `UserError` if they are wrong."""
    distances, rows = (np.asarray(part) for part in neighbours)
    if distances.ndim != 2 or distances.shape != rows.shape or len(rows) != n_queries:
        raise UserError(
            f"neighbours: distances are {list(distances.shape)} and rows {list(rows.shape)}; both "
            f"must be [{n_queries}, k]: a row for each query"
        )
    if distances.shape[1] < k:
        raise UserError(
            f"neighbours: are {distances.shape[1]} for each query, and k is {k}; lower k, or "
            "search for more"
        )
    distances, rows = distances[:, :k].astype(float), rows[:, :k]
    if not np.issubdtype(rows.dtype, np.integer) or rows.min() < 0 or rows.max() >= n:
        raise UserError(f"neighbours: rows must be whole numbers from 0 to {n - 1}")
    ordered = np.sort(rows, axis=1)
    if (ordered[:, 1:] == ordered[:, :-1]).any():
        raise UserError("neighbours: a row of a query is there twice; give each point once")
    if not np.isfinite(distances).all() or (distances < 0).any():
        raise UserError("neighbours: distances must be finite numbers from 0 on")
    if (np.diff(distances, axis=1) < 0).any():
        raise UserError("neighbours: distances of a query must ascend; sort them")
    return Neighbours(distances, rows)


def check_distances(queries: np.ndarray, nearest: np.ndarray, given: Neighbours) -> None:
    """`UserError` if the distances to the nearest neighbours are not those of the vectors.

    `queries` and `nearest` are float[Q, D].
    """
    own = np.linalg.norm(queries.astype(float) - nearest, axis=1)
    off = np.abs(own - given.distances[:, 0])
    if off.max() > TOLERANCE:
        worst = int(off.argmax())
        raise UserError(
            f"neighbours: the nearest one of query {worst + 1} is at distance "
            f"{given.distances[worst, 0]:.4g} as given, and at {own[worst]:.4g} by the vectors; "
            "search among these vectors (of a text, its table of embeddings), by euclidean distance"
        )


def read_once(
    queries: np.ndarray,
    corpus: Corpus,
    rows: np.ndarray,
    k: int,
    settings: Sequence[Setting] = (),
    given: Neighbours | None = None,
) -> Reading:
    """Read a corpus once, and keep what is asked for.

    Parameters
    ----------
    queries, corpus : from `opened`
    rows : the rows of the sample
    k : the number of neighbours; 0 for no search
    settings : kernels and bandwidths of exact densities
    given : neighbours that are known, and are not searched; their nearest distances are checked

    Distances are of the corpus' type; those of copies are 0. Where points are equally near, any of
    them are taken.
    """
    if given is not None:
        with_nearest = np.concatenate([rows, given.rows[:, 0]])
        read = read_once(queries, corpus, with_nearest, 0, settings)
        check_distances(queries, read.sample[len(rows) :], given)
        return read._replace(nearest=given, sample=read.sample[: len(rows)])
    kept, nearest = Kept(corpus, rows), Nearest(len(queries), k, corpus.dtype) if k else None
    sums = [LogSums(len(queries)) for _ in settings]
    if nearest is None and not settings:
        for _ in kept.blocks(POINTS_AT_ONCE):
            pass
        return Reading(None, kept.vectors, [])
    for some, points, squares in squared_distances(queries, kept):
        if nearest is not None:
            nearest.add(some, points, squares)
        for place, (kernel, bandwidth) in enumerate(settings):
            is_last = place == len(settings) - 1
            values = log_kernel_at(squares if is_last else squares.copy(), bandwidth, kernel)
            sums[place].add(some, values)
    return Reading(
        nearest.found() if nearest is not None else None,
        kept.vectors,
        [own.log_means(corpus.n) for own in sums],
    )


class Nearest:
    """The k nearest points to every query, found while a corpus is read from its first point on.

    A point is kept if it is nearer than the k-th of those before, so few are kept of a large
    corpus: about k log(N / k) of N points in random order.
    """

    def __init__(self, n_queries: int, k: int, dtype: np.dtype):
        self.k = k
        width = 2 * k + POINTS_AT_ONCE
        self.squares = np.full((n_queries, width), np.inf, dtype=dtype)
        self.rows = np.zeros((n_queries, width), dtype=np.int64)
        self.filled = np.zeros(n_queries, dtype=np.int64)
        self.below = np.full(n_queries, np.inf, dtype=dtype)

    def add(self, rows: slice, points: slice, squares: np.ndarray) -> None:
        """Add a block of squared distances float[rows, points]."""
        is_near = squares < self.below[rows, None]
        # One axis, because NumPy searches several axes slowly.
        query, point = np.divmod(np.flatnonzero(is_near), is_near.shape[1])
        n = np.bincount(query, minlength=len(squares))
        # The place of each point among the new ones of its query
        among = np.arange(len(query)) - np.repeat(np.cumsum(n) - n, n)
        place = self.filled[rows][query] + among
        self.squares[rows][query, place] = squares[query, point]
        self.rows[rows][query, place] = points.start + point
        self.filled[rows] += n
        full = np.flatnonzero(self.filled[rows] > 2 * self.k)
        if len(full):
            self._keep_k(rows.start + full)

    def _keep_k(self, queries: np.ndarray) -> None:
        squares = self.squares[queries]
        order = np.argpartition(squares, self.k - 1, axis=1)[:, : self.k]
        kept = np.take_along_axis(squares, order, axis=1)
        self.rows[queries, : self.k] = np.take_along_axis(self.rows[queries], order, axis=1)
        self.squares[queries, : self.k] = kept
        self.squares[queries, self.k :] = np.inf
        self.filled[queries] = self.k
        self.below[queries] = kept.max(axis=1)

    def found(self) -> Neighbours:
        """The neighbours of all queries, from the nearest, as float64."""
        order = np.lexsort((self.rows, self.squares), axis=1)[:, : self.k]
        squares = np.take_along_axis(self.squares, order, axis=1).astype(float)
        distances = np.sqrt(np.maximum(squares, 0))
        return Neighbours(distances, np.take_along_axis(self.rows, order, axis=1))


def combined_parts(
    queries: np.ndarray,
    n: int,
    settings: Sequence[Setting],
    asked: Approximation,
    nearest: Neighbours,
    rows: np.ndarray,
    sample: np.ndarray,
) -> list[Parts]:
    """The logs of the parts, from the neighbours and the first sample of a corpus of n points."""
    random = log_random_parts(queries, nearest.rows, settings, asked, rows, sample)
    share, found = asked.k / n, []
    for (kernel, bandwidth), of_others in zip(settings, random, strict=True):
        local = log_of_mean(log_kernel_at(nearest.distances**2, bandwidth, kernel))
        combined = np.logaddexp(np.log(share) + local, np.log1p(-share) + of_others)
        found.append(Parts(local, of_others, combined))
    return found


def log_random_parts(
    queries: np.ndarray,
    neighbours: np.ndarray,
    settings: Sequence[Setting],
    asked: Approximation,
    rows: np.ndarray,
    sample: np.ndarray,
) -> np.ndarray:
    """The log densities float64[settings, Q] over a sample without each query's neighbours.

    The first sample is in random order, so `m2` of its points in a row are a random sample, too. It
    is divided into such windows, and every query is dealt one at random. Where a window holds
    neighbours of its query, points that follow the window take their places. So a query's sample is
    that of algorithm 1, and one matrix product is enough for all queries of a window.

    `neighbours` int[Q, k] are rows of the corpus. `sample` float[m1, D] is the first sample, of the
    corpus' `rows` int[m1], both in random order.
    """
    chance = np.random.default_rng([asked.seed, 2])
    n_windows = max(1, len(rows) // asked.m2)
    dealt = chance.integers(n_windows, size=len(queries))
    order = np.argsort(rows)
    random = np.empty((len(settings), len(queries)))
    for window in range(n_windows):
        own = np.flatnonzero(dealt == window)
        for first in range(0, len(own), QUERIES_AT_ONCE):
            some = own[first : first + QUERIES_AT_ONCE]
            places = _places_in(rows, order, neighbours[some], window * asked.m2)
            squares = _squares_in_window(queries[some], sample, places, window, asked.m2)
            for place, (kernel, bandwidth) in enumerate(settings):
                is_last = place == len(settings) - 1
                values = log_kernel_at(squares if is_last else squares.copy(), bandwidth, kernel)
                random[place, some] = log_of_mean(values)
    return random


def _places_in(
    rows: np.ndarray, order: np.ndarray, neighbours: np.ndarray, start: int
) -> np.ndarray:
    """The places int[Q, k] of neighbours in the sample from a start on; its size for no place."""
    found = np.minimum(np.searchsorted(rows, neighbours, sorter=order), len(rows) - 1)
    places = (order[found] - start) % len(rows)
    return np.where(rows[order[found]] == neighbours, places, len(rows))


def _squares_in_window(
    queries: np.ndarray, sample: np.ndarray, places: np.ndarray, window: int, m2: int
) -> np.ndarray:
    """Squared distances float[Q, m2] to the first m2 points from a window on that are kept.

    `places` int[Q, k] of each query are left out.
    """
    n = len(sample)
    most = int((places < n).sum(axis=1).max())
    width = min(n, m2 + most)
    points = sample[(window * m2 + np.arange(width)) % n]
    squares = np.empty((len(queries), width), dtype=sample.dtype)
    for rows, columns, found in squared_distances(queries, points):
        squares[rows, columns] = found
    is_kept = np.ones((len(queries), width + 1), dtype=bool)
    np.put_along_axis(is_kept, np.minimum(places, width), False, axis=1)
    is_kept = is_kept[:, :width]
    is_kept &= np.cumsum(is_kept, axis=1) <= m2
    return squares[is_kept].reshape(len(queries), m2)
