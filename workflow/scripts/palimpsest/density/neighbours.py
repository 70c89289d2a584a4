"""The nearest points of a corpus, exactly."""

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.density.distances import checked, squared_distances
from palimpsest.errors import UserError


def nearest(queries: ArrayLike, corpus: ArrayLike, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest points of the corpus to every query.

    Parameters
    ----------
    queries : float[Q, D]
    corpus : float[N, D]
    k : from 1 to N

    Returns
    -------
    distances float64[Q, k], from the nearest, and the points' rows int64[Q, k]. Of equally near
    points, those with the lower rows are taken.

    Raises
    ------
    UserError
        If k is not in this range, or for the reasons in `palimpsest.density.distances.checked`.
    """
    queries, corpus = checked(queries, corpus)
    if not 1 <= k <= len(corpus):
        raise UserError(f"k: is {k} and must be from 1 to the size of the corpus, {len(corpus)}")
    squares = np.full((len(queries), k), np.inf)
    rows = np.full((len(queries), k), len(corpus), dtype=np.int64)
    for some, points, found in squared_distances(queries, corpus):
        squares[some], rows[some] = _merged(squares[some], rows[some], found, points.start, k)
    return np.sqrt(np.maximum(squares, 0)), rows


def _merged(
    squares: np.ndarray, rows: np.ndarray, found: np.ndarray, start: int, k: int
) -> tuple[np.ndarray, np.ndarray]:
    """The k nearest of those so far and of a block, in order of distance and row."""
    both = np.concatenate([squares, found], axis=1)
    numbers = np.broadcast_to(np.arange(start, start + found.shape[1]), found.shape)
    both_rows = np.concatenate([rows, numbers], axis=1)
    # A stable sort keeps the order of rows among equally near points.
    if both.shape[1] > 8 * k:
        kth = np.partition(both, k - 1, axis=1)[:, k - 1 : k]
        width = int((both <= kth).sum(axis=1).max())
        kept = np.argsort(both > kth, axis=1, kind="stable")[:, :width]
        both = np.take_along_axis(both, kept, axis=1)
        both_rows = np.take_along_axis(both_rows, kept, axis=1)
    order = np.argsort(both, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(both, order, axis=1), np.take_along_axis(both_rows, order, axis=1)


def mean_distance(queries: ArrayLike, corpus: ArrayLike, k: int) -> np.ndarray:
    """The mean distance float64[Q] of every query to its k nearest points; see `nearest`.

    Source: LMD3, section 6.2: the average distance to the top k, a simpler feature than a density.
    """
    return nearest(queries, corpus, k)[0].mean(axis=1)
