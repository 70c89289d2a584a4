"""Squared distances between queries and a corpus, block by block.

The squared distance |q - x|^2 is computed as |q|^2 + |x|^2 - 2 q x, so that the work is one matrix
product. Where q and x are nearly equal, almost nothing is left of the difference, and rounding
decides the result. Such pairs are computed again from the vectors themselves, so that the distance
of an exact copy is exactly 0.
"""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.errors import UserError

QUERIES_AT_ONCE, POINTS_AT_ONCE = 256, 1024
# A squared distance below this share of the squared norms is computed again. In float64, rounding
# then changes a distance by less than 1e-11 of itself; in float32, by less than 1e-3.
NEAR = {np.dtype(np.float64): 1e-5, np.dtype(np.float32): 1e-3}


def checked(queries: ArrayLike, corpus: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Queries float[Q, D] and corpus float[N, D] of one type, float32 or float64.

    Raises
    ------
    UserError
        If one of them is empty or not a table of vectors, if their widths differ, or if a number is
        not finite.
    """
    both = [np.asarray(queries), np.asarray(corpus)]
    for name, vectors in zip(("queries", "corpus"), both, strict=True):
        if vectors.ndim != 2:
            raise UserError(
                f"{name}: has {vectors.ndim} axes and must have two, one row for each text"
            )
        if not len(vectors):
            raise UserError(f"{name}: is empty; there is nothing to compare")
        if not np.isfinite(vectors).all():
            row = int(np.flatnonzero(~np.isfinite(vectors).all(axis=1))[0])
            raise UserError(f"{name}: row {row} has a number that is not finite; embed it again")
    widths = [vectors.shape[1] for vectors in both]
    if widths[0] != widths[1]:
        raise UserError(
            f"queries: have {widths[0]} dimensions, and the corpus {widths[1]}; embed both with "
            "one model"
        )
    single = all(vectors.dtype == np.float32 for vectors in both)
    kind = np.float32 if single else np.float64
    return tuple(np.ascontiguousarray(vectors, dtype=kind) for vectors in both)


def squared_distances(
    queries: np.ndarray, corpus: np.ndarray
) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """Yield rows of queries, rows of the corpus, and their squared distances float[rows, rows].

    The memory is that of one block, whatever the size of the corpus. The yielded array is used
    again for the next block. `queries` and `corpus` come from `checked`.
    """
    # Vectors around 0 have small norms, so that less is lost in the difference.
    centre = corpus.mean(axis=0, dtype=np.float64).astype(corpus.dtype)
    queries = queries - centre
    of_queries = np.einsum("qd,qd->q", queries, queries)
    near = NEAR[corpus.dtype]
    buffer = np.empty((min(QUERIES_AT_ONCE, len(queries)), POINTS_AT_ONCE), dtype=corpus.dtype)
    for start in range(0, len(corpus), POINTS_AT_ONCE):
        points = slice(start, min(start + POINTS_AT_ONCE, len(corpus)))
        block = corpus[points] - centre
        of_points = np.einsum("nd,nd->n", block, block)
        minus_two = -2 * block.T
        for first in range(0, len(queries), QUERIES_AT_ONCE):
            rows = slice(first, min(first + QUERIES_AT_ONCE, len(queries)))
            found = buffer[: rows.stop - rows.start, : points.stop - points.start]
            if found.shape[1] == POINTS_AT_ONCE:
                np.matmul(queries[rows], minus_two, out=found)
            else:
                found = queries[rows] @ minus_two
            found += of_points
            found += of_queries[rows, None]
            _mend(found, queries[rows], block, near * (of_queries[rows].max() + of_points.max()))
            yield rows, points, found


def _mend(found: np.ndarray, queries: np.ndarray, block: np.ndarray, below: float) -> None:
    """Compute squared distances below a bound again, from the vectors."""
    if found.min() >= below:
        return
    of_queries, of_points = np.nonzero(found < below)
    for first in range(0, len(of_queries), POINTS_AT_ONCE):
        some = slice(first, first + POINTS_AT_ONCE)
        apart = queries[of_queries[some]] - block[of_points[some]]
        found[of_queries[some], of_points[some]] = np.einsum("pd,pd->p", apart, apart)
