"""Kernel density estimates, exact and from nearest neighbours with a random sample.

The density of a corpus at a query is the mean of a kernel over the points of the corpus. The
kernels are 1 at distance 0 and are not normalised to integrate to 1, as in the paper's software:

    gaussian     exp(-|q - x|^2 / (2 h^2))
    exponential  exp(-|q - x| / h)

Sources: LMD3: Language Model Data Density Dependence, sections 3 and 4, algorithm 1 and appendix
A.1; Karppa et al., DEANN: Speeding up kernel-density estimation using approximate nearest neighbor
search (2022).
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.density.distances import checked, squared_distances
from palimpsest.density.neighbours import nearest
from palimpsest.errors import UserError

KERNELS = GAUSSIAN, EXPONENTIAL = ("gaussian", "exponential")


@dataclass(frozen=True)
class Approximation:
    """The sizes of algorithm 1, and the seed of its samples.

    `k` nearest neighbours are exact. A first sample of `m1` points of the corpus is drawn once, and
    from those of its points that are no neighbours of a query, `m2` points are drawn for the query.
    """

    k: int = 1000
    m1: int = 1_000_000
    m2: int = 10_000
    seed: int = 0


class Parts(NamedTuple):
    """The parts of an approximate density: float64[Q] each.

    `local` is the density over the k nearest neighbours, `random` that over the random sample, and
    `combined` their mean, weighted by k and by the number of other points of the corpus.
    """

    local: np.ndarray
    random: np.ndarray
    combined: np.ndarray


def kernel_density(
    queries: ArrayLike,
    corpus: ArrayLike,
    bandwidth: float,
    kernel: str = GAUSSIAN,
    approximation: Approximation | None = None,
) -> np.ndarray:
    """The density float64[Q] of a corpus at every query, from 0 to 1.

    Parameters
    ----------
    queries : float[Q, D]
    corpus : float[N, D]; in float32, if both are, the result is known to about 1e-3
    bandwidth : above 0, in units of the embedding
    kernel : `gaussian` or `exponential`
    approximation : None is exact

    Raises
    ------
    UserError
        If the bandwidth, the kernel or the approximation is not allowed, or for the reasons in
        `palimpsest.density.distances.checked`.

    Source: LMD3, definition 3.1; algorithm 1 with an approximation.
    """
    if approximation is not None:
        return parts_of_density(queries, corpus, bandwidth, kernel, approximation).combined
    return np.exp(log_kernel_density(queries, corpus, bandwidth, kernel))


def log_kernel_density(
    queries: ArrayLike, corpus: ArrayLike, bandwidth: float, kernel: str = GAUSSIAN
) -> np.ndarray:
    """The log of the exact density, float64[Q], also where the density itself is too small.

    The parameters and errors are those of `kernel_density`.
    """
    _check(bandwidth, kernel)
    queries, corpus = checked(queries, corpus)
    largest = np.full(len(queries), -np.inf)
    total = np.zeros(len(queries))
    for rows, _, squares in squared_distances(queries, corpus):
        log_kernel = _log_kernel(squares, bandwidth, kernel)
        peak = np.maximum(largest[rows], log_kernel.max(axis=1))
        log_kernel -= peak[:, None].astype(log_kernel.dtype)
        np.exp(log_kernel, out=log_kernel)
        total[rows] = total[rows] * np.exp(largest[rows] - peak) + log_kernel.sum(axis=1)
        largest[rows] = peak
    return largest + np.log(total) - np.log(len(corpus))


def parts_of_density(
    queries: ArrayLike,
    corpus: ArrayLike,
    bandwidth: float,
    kernel: str = GAUSSIAN,
    approximation: Approximation | None = None,
) -> Parts:
    """The local and the random part of the approximate density, and both together.

    The combination is unbiased. The parameters and errors are those of `kernel_density`; without an
    approximation, its default is used.

    Source: LMD3, algorithm 1.
    """
    asked = approximation or Approximation()
    _check(bandwidth, kernel)
    queries, corpus = checked(queries, corpus)
    n = len(corpus)
    if not 1 <= asked.k < n:
        raise UserError(f"k: is {asked.k} and must be from 1 to {n - 1}, below the corpus' size")
    most = min(asked.m1, n) - asked.k
    if not 1 <= asked.m2 <= most:
        raise UserError(
            f"m2: is {asked.m2} and must be from 1 to m1 - k, {most}: the sample of a query is "
            "drawn from the first sample, without the neighbours"
        )
    distances, neighbours = nearest(queries, corpus, asked.k)
    local = np.exp(_log_kernel(distances**2, bandwidth, kernel)).mean(axis=1)
    chance = np.random.default_rng(asked.seed)
    first = chance.permutation(n)[: asked.m1]
    random = np.empty(len(queries))
    for place, query in enumerate(queries):
        # Of m2 + k points at most k are neighbours, so m2 others are left, in random order.
        enough = min(len(first), asked.m2 + asked.k)
        drawn = first[chance.choice(len(first), enough, replace=False)]
        others = drawn[~np.isin(drawn, neighbours[place])][: asked.m2]
        apart = corpus[others] - query
        squares = np.einsum("nd,nd->n", apart, apart).astype(float)
        random[place] = np.exp(_log_kernel(squares, bandwidth, kernel)).mean()
    share = asked.k / n
    return Parts(local, random, share * local + (1 - share) * random)


def _check(bandwidth: float, kernel: str) -> None:
    if not bandwidth > 0:
        raise UserError(f"bandwidth: is {bandwidth} and must be above 0")
    if kernel not in KERNELS:
        raise UserError(f"kernel: {kernel!r} is unknown; choose from {', '.join(KERNELS)}")


def _log_kernel(squares: np.ndarray, bandwidth: float, kernel: str) -> np.ndarray:
    """The log of the kernel at squared distances, in place where this saves memory."""
    if kernel == GAUSSIAN:
        squares *= -0.5 / bandwidth**2
        return squares
    np.maximum(squares, 0, out=squares)
    np.sqrt(squares, out=squares)
    squares *= -1 / bandwidth
    return squares
