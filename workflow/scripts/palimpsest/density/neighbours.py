"""The nearest points of a corpus, by faiss.

faiss searches in float32, where rounding decides between points that are nearly equally near, and
a copy is not at distance 0. So faiss searches for more points than k, and their distances are
computed again in float64, from the vectors. The k nearest points are certain if no point that faiss
left out can be nearer, given a bound of faiss' rounding. Otherwise faiss searches for more points.

Sources: LMD3: Language Model Data Density Dependence, section 4.2 and footnote 2; Johnson et al.,
Billion-scale similarity search with GPUs (2019).
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import checked_word
from palimpsest.density.distances import checked
from palimpsest.density.sizes import EXACT, INDEXES, checked_neighbours, checked_seed
from palimpsest.lazy_import import lazy_import, naming_extra
from palimpsest.short_repr import short_repr

pd = lazy_import("pandas")

# Number of points beyond k in faiss' first search, and the factor for each further search.
MARGIN, WIDER = 32, 4
# The approximate index: points per list to place the lists, rounds to do so, and lists searched.
TRAINED_ON, ROUNDS, LISTS_SEARCHED = 50, 6, 32
# Bounds of the memory: neighbours of all queries, and rows of vectors.
FOUND_AT_ONCE, ROWS_AT_ONCE = 2**22, 1024
MOST_ON_GPU = 2048  # neighbours of a query that faiss can find on a GPU
FAR = 1e6  # from here on, in units of the corpus' largest norm, points are equally near in float32


class Neighbours(NamedTuple):
    """The nearest points to every query: distances float[Q, k] and rows int[Q, k] of the corpus.

    The distances of a query ascend.
    """

    distances: np.ndarray
    rows: np.ndarray

    __repr__ = short_repr

    def to_frame(self, string_id: ArrayLike | None = None) -> pd.DataFrame:
        """A row per query and neighbour: `string_id`, `k` (1: the nearest), `distance` and `row`.

        `string_id` names the queries, by default by their numbers. `row` is a row of the corpus.
        """
        n, k = self.rows.shape
        names = np.arange(n) if string_id is None else np.asarray(string_id)
        return pd.DataFrame(
            {
                "string_id": np.repeat(names, k),
                "k": np.tile(np.arange(1, k + 1), n),
                "distance": self.distances.ravel(),
                "row": self.rows.ravel(),
            }
        )


def nearest(
    queries: ArrayLike, corpus: ArrayLike, k: int, index: str = EXACT, seed: int = 0
) -> Neighbours:
    """The k nearest points of the corpus to every query.

    Parameters
    ----------
    queries : float[Q, D]
    corpus : float[N, D]
    k : from 1 to N
    index : `exact`, or `ivf`, which searches a part of the corpus and misses some neighbours
    seed : of an approximate index

    Returns distances float64[Q, k], from the nearest, and the points' rows int64[Q, k]. The
    distance of a copy is 0. Of equally near points, the exact index takes those with the lower
    rows.

    Raises `UserError` if k is not in this range, if the index is unknown, if the seed is not a
    whole number from 0 on, or for the reasons in `palimpsest.density.distances.checked`.
    """
    index, seed = checked_word("index", index, INDEXES), checked_seed(seed)
    queries, corpus = checked(queries=queries, corpus=corpus)
    k = checked_neighbours(k, len(corpus))
    return Neighbours(*Index(corpus, index, seed).search(queries, k))


def mean_distance(queries: ArrayLike, corpus: ArrayLike, k: int) -> np.ndarray:
    """The mean distance float64[Q] of every query to its k nearest points; see `nearest`.

    Source: LMD3, section 6.2: the average distance to the top k, a simpler feature than a density.
    """
    return nearest(queries, corpus, k)[0].mean(axis=1)


class Index:
    """A corpus float[N, D], from `checked`, that is built once and searched for any queries.

    It holds a copy of the corpus in float32. The exact index searches on GPUs if faiss has any. The
    approximate index is faiss' inverted file: sqrt(N) lists of points around a centre. A
    search reads the lists with the nearest centres. The approximate index is on the CPU; on one
    thread, it is always the same for the same seed.
    """

    def __init__(self, corpus: np.ndarray, kind: str = EXACT, seed: int = 0):
        with naming_extra():
            import faiss

        self.corpus, self.is_exact = corpus, kind == EXACT
        # With vectors around 0, of norms up to 1, the rounding of faiss is small.
        self.centre = corpus.mean(axis=0, dtype=np.float64).astype(corpus.dtype)
        blocks = [
            slice(start, start + ROWS_AT_ONCE) for start in range(0, len(corpus), ROWS_AT_ONCE)
        ]
        norms = [np.linalg.norm(corpus[some] - self.centre, axis=1).max() for some in blocks]
        self.scale = max(norms) or corpus.dtype.type(1)
        width = corpus.shape[1]
        self.on_cpu = faiss.IndexFlatL2(width) if self.is_exact else self._trained(seed)
        for some in blocks:
            self.on_cpu.add(self._scaled(corpus[some]))
        has_gpu = self.is_exact and faiss.get_num_gpus() > 0
        self.on_gpu = faiss.index_cpu_to_all_gpus(self.on_cpu) if has_gpu else None

    def search(self, queries: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The k nearest points to queries float[Q, D], of the corpus' type; see `nearest`."""
        distances = np.empty((len(queries), k))
        rows = np.empty((len(queries), k), dtype=np.int64)
        uncertain, width = np.arange(len(queries)), k + MARGIN * self.is_exact
        while len(uncertain):
            width = min(width, len(self.corpus))
            left = []
            for some in _at_once(uncertain, width):
                found, beyond = self._candidates(queries[some], width)
                squares = self._squares(queries[some], found)
                order = np.lexsort((found, squares), axis=1)[:, :k]
                rows[some] = np.take_along_axis(found, order, axis=1)
                squares = np.take_along_axis(squares, order, axis=1)
                distances[some] = np.sqrt(squares)
                left.append(some[~(squares[:, -1] < beyond)])
            uncertain, width = np.concatenate(left), WIDER * width
        return distances, rows

    def _candidates(self, queries: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
        """Rows int64[Q, width], and a squared distance float64[Q] that all other points exceed."""
        if width == len(self.corpus):
            every = np.broadcast_to(np.arange(width), (len(queries), width))
            return every, np.full(len(queries), np.inf)
        if not self.is_exact:
            # What an approximate index misses is accepted.
            return self._of_lists(self._drawn_near(queries), width), np.full(len(queries), np.inf)
        scaled = self._scaled(queries)
        uses_gpu = self.on_gpu is not None and width <= MOST_ON_GPU
        squares, found = (self.on_gpu if uses_gpu else self.on_cpu).search(scaled, width)
        # faiss adds the squared norms of q and x and -2 q x, each a sum over the dimensions. Its
        # rounding, and that of `scaled`, is at most this share of (|q| + |x|)^2, and |x| <= 1.
        share = (scaled.shape[1] + 16) * 2.0**-24
        rounding = share * (np.linalg.norm(scaled.astype(float), axis=1) + 1) ** 2
        # Where float32 overflows, faiss gives its largest number, which the neighbours exceed.
        with np.errstate(invalid="ignore"):
            return found, (squares[:, -1] - rounding) * float(self.scale) ** 2

    def _of_lists(self, scaled: np.ndarray, k: int) -> np.ndarray:
        """Rows int64[Q, k] from the nearest lists; from all lists, if these hold fewer than k."""
        import faiss

        found = self.on_cpu.search(scaled, k)[1]
        few = (found < 0).any(axis=1)
        if few.any():
            every = faiss.SearchParametersIVF(nprobe=self.on_cpu.nlist)
            found[few] = self.on_cpu.search(scaled[few], k, params=every)[1]
        return found

    def _trained(self, seed: int):
        """An empty inverted file with its centres, from a sample of the corpus."""
        import faiss

        n, width = self.corpus.shape
        lists = isqrt(n)
        # A separate random stream: the samples of a density must not depend on the index.
        chance = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(1,)))
        index = faiss.index_factory(width, f"IVF{lists},Flat")
        index.nprobe = min(LISTS_SEARCHED, lists)
        index.cp.niter, index.cp.min_points_per_centroid = ROUNDS, 1
        index.cp.seed = int(chance.integers(2**31))
        sample = chance.choice(n, min(n, TRAINED_ON * lists), replace=False)
        index.train(self._scaled(self.corpus[sample]))
        return index

    def _scaled(self, vectors: np.ndarray) -> np.ndarray:
        """Vectors float32, relative to the corpus' centre and largest norm."""
        with np.errstate(over="ignore"):
            return self._relative(vectors).astype(np.float32)

    def _drawn_near(self, queries: np.ndarray) -> np.ndarray:
        """Like `_scaled`, for queries. Queries too far for float32 keep only their direction."""
        relative = self._relative(queries)
        longest = np.abs(relative).max(axis=1, keepdims=True)
        return (relative / np.maximum(longest / FAR, 1)).astype(np.float32)

    def _relative(self, vectors: np.ndarray) -> np.ndarray:
        return (vectors - self.centre) / self.scale

    def _squares(self, queries: np.ndarray, rows: np.ndarray) -> np.ndarray:
        queries = queries.astype(np.float64)
        pairs = zip(queries, rows, strict=True)
        return np.stack([squares_to(query, self.corpus, some) for query, some in pairs])


def squares_to(query: np.ndarray, corpus: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Squared distances float64[n] of a query float[D] to rows int[n] of a corpus float[N, D].

    They are computed from differences of vectors, in the more precise of both types.
    """
    squares = np.empty(len(rows))
    shape = min(len(rows), ROWS_AT_ONCE), len(query)
    points, apart = np.empty(shape, corpus.dtype), np.empty(shape, np.result_type(query, corpus))
    for start in range(0, len(rows), ROWS_AT_ONCE):
        some = slice(start, min(start + ROWS_AT_ONCE, len(rows)))
        n = some.stop - start
        # All rows exist; with the mode `raise`, NumPy would copy the points once more.
        np.take(corpus, rows[some], axis=0, out=points[:n], mode="clip")
        np.subtract(points[:n], query, out=apart[:n])
        squares[some] = np.einsum("nd,nd->n", apart[:n], apart[:n])
    return squares


def _at_once(rows: np.ndarray, width: int) -> Iterator[np.ndarray]:
    """Split rows into groups whose `width` neighbours each fit into memory."""
    step = max(1, FOUND_AT_ONCE // width)
    return (rows[start : start + step] for start in range(0, len(rows), step))
