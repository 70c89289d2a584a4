"""Squared distances between queries and a corpus, block by block.

The squared distance |q - x|^2 is computed as |q|^2 + |x|^2 - 2 q x, so that the work is one matrix
product. Where q and x are nearly equal, almost nothing is left of the difference, and rounding
decides the result. Such pairs are computed again from the vectors themselves, so that the distance
of an exact copy is exactly 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from numbers import Real
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import numeric, shown
from palimpsest.errors import UserError

QUERIES_AT_ONCE, POINTS_AT_ONCE = 256, 1024
# A squared distance below this share of the squared norms is computed again. In float64, rounding
# then changes a distance by less than 1e-11 of itself; in float32, by less than 1e-3.
NEAR = {np.dtype(np.float64): 1e-5, np.dtype(np.float32): 1e-3}
# With larger numbers, the square of a distance over that of a narrow bandwidth is not finite.
LARGEST = {np.dtype(np.float64): 1e100, np.dtype(np.float32): 1e6}


class Corpus(Protocol):
    """Vectors float[N, D] in an order, which can be read from the start any number of times."""

    n: int
    width: int
    dtype: np.dtype

    def blocks(self, size: int) -> Iterator[np.ndarray]:
        """Yield the vectors float[at most size, D]; a block is valid until the next one."""


def checked(**named: ArrayLike) -> list[np.ndarray]:
    """Vectors float[n, D] of the same width, by their names in messages, all as one type.

    For example, `checked(queries=queries, corpus=corpus)`. The type is float32 if all are float32,
    and float64 otherwise.

    Raises `UserError` if there are no vectors, if they are not a table of numbers, if their widths
    differ, or if a number is not finite or so large that distances are not (1e100; 1e6 in float32).
    """
    arrays = {name: _table(name, vectors) for name, vectors in named.items()}
    single = all(vectors.dtype == np.float32 for vectors in arrays.values())
    kind = np.dtype(np.float32 if single else np.float64)
    for name, vectors in arrays.items():
        if not _are_small(vectors, LARGEST[kind]):
            raise UserError(f"{name}: {_wrong_number(vectors, LARGEST[kind])}")
    (first, one), *others = arrays.items()
    for name, other in others:
        if one.shape[1] != other.shape[1]:
            raise UserError(
                f"{first}: have {one.shape[1]} dimensions, and the {name} {other.shape[1]}; embed "
                "both with one model"
            )
    return [np.ascontiguousarray(vectors, dtype=kind) for vectors in arrays.values()]


def checked_block(name: str, vectors: np.ndarray, start: int) -> None:
    """`UserError` if a vector is not allowed; the first row of the block has number `start`."""
    largest = LARGEST[vectors.dtype]
    if not _are_small(vectors, largest):
        raise UserError(f"{name}: {_wrong_number(vectors, largest, start)}")


def _are_small(vectors: np.ndarray, largest: float) -> bool:
    """Whether all numbers are finite, and at most `largest` from 0."""
    if vectors.flags.c_contiguous and vectors.dtype in LARGEST:
        flat = vectors.ravel()
        # Reads the vectors once, which is enough for ordinary sizes; the comparison fails for NaN.
        with np.errstate(over="ignore", invalid="ignore"):
            if flat @ flat <= largest**2:
                return True
    # Both are NaN if any number is.
    return -largest <= float(vectors.min()) and float(vectors.max()) <= largest


def _table(name: str, vectors: ArrayLike) -> np.ndarray:
    """Vectors as an array [n, D] of numbers, neither n nor D being 0; otherwise `UserError`."""
    try:
        table = np.asarray(vectors)
    except (TypeError, ValueError, RuntimeError):
        raise UserError(f"{name}: {_wrong_row(vectors)}") from None
    if table.ndim and not len(table):
        raise UserError(f"{name}: is empty; there is nothing to compare")
    if table.ndim != 2:
        what = f"has {table.ndim} axes" if table.ndim else f"is of type {type(vectors).__name__}"
        raise UserError(f"{name}: {what} and must have two axes, one row for each text")
    if not table.shape[1]:
        raise UserError(f"{name}: have 0 dimensions; embed the texts again")
    try:
        return numeric(table)
    except (ValueError, OverflowError):
        raise UserError(f"{name}: {_wrong_row(table)}") from None


def _wrong_row(vectors: Iterable) -> str:
    """The message about the first row that is not a vector of numbers as wide as the row before."""
    width = None
    for row, vector in enumerate(vectors.tolist() if isinstance(vectors, np.ndarray) else vectors):
        if not isinstance(vector, Sequence | np.ndarray) or isinstance(vector, str):
            return f"row {row} is {shown(vector)}, which is no vector; embed it again"
        for value in vector:
            if not isinstance(value, Real):
                return f"row {row} has {shown(value)}, which is no number; embed it again"
        if width not in (None, len(vector)):
            return (
                f"row {row} has {len(vector)} dimensions, and row {row - 1} {width}; embed all "
                "texts with one model"
            )
        width = len(vector)
    return "are not a table of numbers; embed the texts again"


def _wrong_number(vectors: np.ndarray, largest: float, start: int = 0) -> str:
    """The message about the first row with a number that is not allowed; rows from `start` on."""
    finite = np.isfinite(vectors)
    if not finite.all():
        row = int(np.argmin(finite.all(axis=1)))
        return f"row {start + row} has a number that is not finite; embed it again"
    row, column = np.argwhere((vectors > largest) | (vectors < -largest))[0]
    return (
        f"row {start + row} has {vectors[row, column]:g}, and numbers are at most {largest:g} in "
        f"{'float32' if largest == LARGEST[np.dtype(np.float32)] else 'float64'}; divide all "
        "vectors by one number"
    )


def squared_distances(
    queries: np.ndarray, corpus: np.ndarray | Corpus
) -> Iterator[tuple[slice, slice, np.ndarray]]:
    """Yield rows of queries, rows of the corpus, and their squared distances float[rows, rows].

    The memory is that of one block, whatever the size of the corpus. The yielded array is used
    again for the next block. `queries` come from `checked`, and `corpus` does, too, or is a
    `Corpus` of the same type.
    """
    # Vectors around 0 have small norms, so that less is lost in the difference.
    centre = _centre(corpus)
    queries = queries - centre
    of_queries = np.einsum("qd,qd->q", queries, queries)
    near = NEAR[corpus.dtype]
    buffer = np.empty((min(QUERIES_AT_ONCE, len(queries)), POINTS_AT_ONCE), dtype=corpus.dtype)
    # Allocated once: freeing and allocating memory for each block takes a tenth of the time.
    both = np.empty((2, POINTS_AT_ONCE, queries.shape[1]), dtype=corpus.dtype)
    stop = 0
    for vectors in _blocks(corpus, POINTS_AT_ONCE):
        points = slice(stop, stop := stop + len(vectors))
        block, minus_two = both[:, : len(vectors)]
        np.subtract(vectors, centre, out=block)
        of_points = np.einsum("nd,nd->n", block, block)
        minus_two = np.multiply(block, -2, out=minus_two).T
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


def _blocks(corpus: np.ndarray | Corpus, size: int) -> Iterator[np.ndarray]:
    if not isinstance(corpus, np.ndarray):
        return corpus.blocks(size)
    return (corpus[start : start + size] for start in range(0, len(corpus), size))


def _centre(corpus: np.ndarray | Corpus) -> np.ndarray:
    """The mean of the vectors; of a corpus on disk, that of its first block."""
    if not isinstance(corpus, np.ndarray):
        corpus = next(iter(corpus.blocks(POINTS_AT_ONCE)))
    return corpus.mean(axis=0, dtype=np.float64).astype(corpus.dtype)


def _mend(found: np.ndarray, queries: np.ndarray, block: np.ndarray, below: float) -> None:
    """Compute squared distances below a bound again, from the vectors."""
    if found.min() >= below:
        return
    of_queries, of_points = np.nonzero(found < below)
    for first in range(0, len(of_queries), POINTS_AT_ONCE):
        some = slice(first, first + POINTS_AT_ONCE)
        apart = queries[of_queries[some]] - block[of_points[some]]
        found[of_queries[some], of_points[some]] = np.einsum("pd,pd->p", apart, apart)
