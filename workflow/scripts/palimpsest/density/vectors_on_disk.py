"""A corpus of vectors that is read block by block, from files or from memory.

Memory is that of one block, whatever the size of the corpus.

Source: LMD3: Language Model Data Density Dependence, section 5.4: 3.5 billion vectors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from palimpsest.density.distances import Corpus, checked_block
from palimpsest.errors import UserError

SINGLE = np.dtype(np.float32)


class InMemory:
    """An array float[N, D], from `distances.checked`, as a corpus."""

    def __init__(self, vectors: np.ndarray):
        self.vectors, self.dtype = vectors, vectors.dtype
        self.n, self.width = vectors.shape

    def blocks(self, size: int) -> Iterator[np.ndarray]:
        for start in range(0, self.n, size):
            yield self.vectors[start : start + size]


class Shard(NamedTuple):
    path: Path
    offset: int  # bytes before the first vector
    rows: int
    width: int


class Shards:
    """A corpus in `.npy` files of float32[n, D], one after the other.

    `paths` are files, or one folder, whose `.npy` files are taken in the order of their names. The
    files are read with ordinary reads, so that a corpus far larger than the memory is no trouble.

    Raises `UserError` if there is no file, if a file is not such an array, or if widths differ. A
    vector that is not finite, or too large, is found when it is read.
    """

    dtype = SINGLE

    def __init__(self, paths: str | Path | Sequence[str | Path]):
        self.shards = [_shard(path) for path in _files(paths)]
        self.n = sum(shard.rows for shard in self.shards)
        self.width = self.shards[0].width
        for shard in self.shards:
            if shard.width != self.width:
                raise UserError(
                    f"{shard.path}: has vectors of {shard.width} dimensions, and "
                    f"{self.shards[0].path} of {self.width}; embed both with one model"
                )
        if not self.n:
            raise UserError(f"{self.shards[0].path}: is empty; there is nothing to compare")

    def __repr__(self) -> str:
        return f"Shards({len(self.shards)} files, float32[{self.n}, {self.width}])"

    def blocks(self, size: int) -> Iterator[np.ndarray]:
        buffer = np.empty((size, self.width), dtype=SINGLE)
        for shard in self.shards:
            with open(shard.path, "rb", buffering=0) as file:
                file.seek(shard.offset)
                for start in range(0, shard.rows, size):
                    block = buffer[: min(size, shard.rows - start)]
                    if _read_into(file, block) < block.nbytes:
                        raise UserError(f"{shard.path}: ends early; write it again")
                    checked_block(str(shard.path), block, start)
                    yield block


def _files(paths: str | Path | Sequence[str | Path]) -> list[Path]:
    if not isinstance(paths, str | Path):
        files = [Path(path) for path in paths]
    elif Path(paths).is_dir():
        files = sorted(Path(paths).glob("*.npy"))
    else:
        files = [Path(paths)]
    if not files:
        raise UserError(f"{paths}: has no .npy files; write vectors there with numpy.save")
    return files


def _shard(path: Path) -> Shard:
    """The place of the vectors in a file; `UserError` if it is no array float32[n, D]."""
    try:
        with open(path, "rb") as file:
            version = np.lib.format.read_magic(file)
            read = np.lib.format.read_array_header_1_0
            if version != (1, 0):
                read = np.lib.format.read_array_header_2_0
            shape, is_fortran, dtype = read(file)
            offset = file.tell()
    except FileNotFoundError:
        raise UserError(f"{path}: no such file; name .npy files of vectors") from None
    except (OSError, ValueError):
        raise UserError(f"{path}: is no .npy file; write it with numpy.save") from None
    if dtype != SINGLE or len(shape) != 2 or is_fortran or not shape[1]:
        raise UserError(
            f"{path}: is {dtype}{list(shape)}{' in the order of Fortran' * is_fortran} and must be "
            "float32[n, D]: numpy.save(path, numpy.ascontiguousarray(vectors, dtype='float32'))"
        )
    return Shard(path, offset, *shape)


def _read_into(file, block: np.ndarray) -> int:
    """Fill a block from a file; the number of bytes that were there."""
    view, filled = memoryview(block).cast("B"), 0
    while filled < len(view):
        n = file.readinto(view[filled:])
        if not n:
            break
        filled += n
    return filled


class Kept:
    """A corpus that keeps some of its vectors while it is read.

    `rows` int[m] are the numbers of the vectors to keep, in any order. After all blocks were read,
    `vectors` float[m, D] holds them, in this order.
    """

    def __init__(self, corpus: Corpus, rows: np.ndarray):
        self.corpus = corpus
        self.n, self.width, self.dtype = corpus.n, corpus.width, corpus.dtype
        self.places = np.argsort(rows)
        self.rows = rows[self.places]
        self.vectors = np.empty((len(rows), corpus.width), dtype=corpus.dtype)

    def blocks(self, size: int) -> Iterator[np.ndarray]:
        start = 0
        for block in self.corpus.blocks(size):
            first, last = np.searchsorted(self.rows, [start, start + len(block)])
            self.vectors[self.places[first:last]] = block[self.rows[first:last] - start]
            start += len(block)
            yield block
