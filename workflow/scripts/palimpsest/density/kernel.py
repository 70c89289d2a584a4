"""Kernel density estimates, exact and from nearest neighbours with a random sample.

The density of a corpus at a query is the mean of a kernel over the points of the corpus. The
kernels are 1 at distance 0 and are not normalised to integrate to 1, as in the paper's software:

    gaussian     exp(-|q - x|^2 / (2 h^2))
    exponential  exp(-|q - x| / h)

Sources: LMD3: Language Model Data Density Dependence, sections 3 and 4, algorithm 1 and appendix
A.1; Karppa et al., DEANN: Speeding up kernel-density estimation using approximate nearest neighbor
search (2022).
"""

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import Number, checked_number, checked_word, shown
from palimpsest.density.distances import LARGEST, checked, squared_distances
from palimpsest.density.kinds import EXPONENTIAL, GAUSSIAN, KERNELS
from palimpsest.density.neighbours import Index, squares_to
from palimpsest.density.sizes import Approximation
from palimpsest.errors import UserError

Setting = tuple[str, float]  # a kernel and its bandwidth
# A narrower kernel sees only copies, and a wider kernel sees no distances. Squares stay finite.
BANDWIDTHS = Number(least=1e-9, most=LARGEST[np.dtype(np.float64)])


class Parts(NamedTuple):
    """The parts of an approximate density: float64[Q] each.

    `local` is the density over the k nearest neighbours, `random` that over the random sample, and
    `combined` is their mean, weighted by k and by the number of other points of the corpus.
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
    bandwidth : from 1e-9 to 1e100, in units of the embedding
    kernel : `gaussian` or `exponential`
    approximation : None is exact

    Raises `UserError` if the bandwidth, the kernel or the approximation is not allowed, or for the
    reasons in `palimpsest.density.distances.checked`.

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
    kernel, bandwidth = _checked_setting(kernel, bandwidth)
    queries, corpus = checked(queries=queries, corpus=corpus)
    return _log_mean(queries, corpus, bandwidth, kernel, len(corpus))


def log_density_of_others(
    points: ArrayLike, bandwidth: float, kernel: str = GAUSSIAN
) -> np.ndarray:
    """The log of the exact density, float64[N], of all other points at each of N points.

    A copy of a point is another point.

    Raises `UserError` if there is only one point, or for the reasons in `kernel_density`.
    """
    kernel, bandwidth = _checked_setting(kernel, bandwidth)
    (points,) = checked(points=points)
    if len(points) == 1:
        raise UserError("points: has one point only, so no point has others; give at least two")
    return _log_mean(points, points, bandwidth, kernel, len(points) - 1, without_itself=True)


def _log_mean(
    queries: np.ndarray,
    corpus: np.ndarray,
    bandwidth: float,
    kernel: str,
    n: int,
    without_itself: bool = False,
) -> np.ndarray:
    """The log of the kernel's sum over the corpus, divided by n."""
    largest = np.full(len(queries), -np.inf)
    total = np.zeros(len(queries))
    for rows, points, squares in squared_distances(queries, corpus):
        log_kernel = _log_kernel(squares, bandwidth, kernel)
        if without_itself:
            own = np.arange(max(rows.start, points.start), min(rows.stop, points.stop))
            log_kernel[own - rows.start, own - points.start] = -np.inf
        peak = np.maximum(largest[rows], log_kernel.max(axis=1))
        log_kernel -= peak[:, None].astype(log_kernel.dtype)
        np.exp(log_kernel, out=log_kernel)
        total[rows] = total[rows] * np.exp(largest[rows] - peak) + log_kernel.sum(axis=1)
        largest[rows] = peak
    return largest + np.log(total) - np.log(n)


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
    asked = Approximation() if approximation is None else approximation
    (of_setting,) = log_parts_of_densities(queries, corpus, [(kernel, bandwidth)], asked)
    return Parts(*map(np.exp, of_setting))


def log_parts_of_densities(
    queries: ArrayLike, corpus: ArrayLike, settings: Sequence[Setting], asked: Approximation
) -> list[Parts]:
    """The logs of the parts for several kernels and bandwidths, also where a part is too small.

    All of them share the neighbours and the samples.
    """
    settings = [_checked_setting(*setting) for setting in settings]
    if not isinstance(asked, Approximation):
        raise UserError(
            f"approximation: is {shown(asked)} and must be an Approximation, such as "
            "Approximation(k=100, m1=10000, m2=1000)"
        )
    queries, corpus = checked(queries=queries, corpus=corpus)
    asked.check(len(corpus))
    distances, neighbours = Index(corpus, asked.index, asked.seed).search(queries, asked.k)
    random = log_random_parts(queries, corpus, neighbours, settings, asked)
    share = asked.k / len(corpus)
    found = []
    for (kernel, bandwidth), of_others in zip(settings, random, strict=True):
        local = _log_of_mean(_log_kernel(distances**2, bandwidth, kernel))
        combined = np.logaddexp(np.log(share) + local, np.log1p(-share) + of_others)
        found.append(Parts(local, of_others, combined))
    return found


def log_random_parts(
    queries: np.ndarray,
    corpus: np.ndarray,
    neighbours: np.ndarray,
    settings: Sequence[Setting],
    asked: Approximation,
) -> np.ndarray:
    """The log densities float64[settings, Q] over a sample without each query's neighbours.

    `queries` and `corpus` come from `palimpsest.density.distances.checked`, and `neighbours`
    int[Q, k] from `nearest`.
    """
    chance = np.random.default_rng(asked.seed)
    first = chance.permutation(len(corpus))[: asked.m1]
    places = np.full(len(corpus), -1)
    places[first] = np.arange(len(first))
    random = np.empty((len(settings), len(queries)))
    for number, query in enumerate(queries):
        of_neighbours = places[neighbours[number]]
        left_out = of_neighbours[of_neighbours >= 0]
        others = first[sample_without(left_out, len(first), asked.m2, chance)]
        squares = squares_to(query, corpus, others)
        for place, (kernel, bandwidth) in enumerate(settings):
            # A copy, because the kernel may be computed in place
            log_kernel = _log_kernel(squares.copy(), bandwidth, kernel)
            random[place, number] = _log_of_mean(log_kernel)
    return random


def sample_without(
    left_out: np.ndarray, n: int, size: int, chance: np.random.Generator
) -> np.ndarray:
    """A random sample of `size` of the numbers below n, without replacement, without `left_out`."""
    kept = n - len(left_out)
    drawn = chance.choice(kept, size, replace=False, shuffle=False)
    # The i-th kept number is i plus the number of smaller numbers that are left out.
    before = np.sort(left_out) - np.arange(len(left_out))
    return drawn + np.searchsorted(before, drawn, side="right")


def preferred_kernel(names: Collection[str]) -> str:
    return GAUSSIAN if GAUSSIAN in names else EXPONENTIAL


def _checked_setting(kernel: str, bandwidth: float) -> Setting:
    kernel = checked_word("kernel", kernel, KERNELS)
    return kernel, checked_number("bandwidth", bandwidth, BANDWIDTHS)


def _log_of_mean(log_kernel: np.ndarray) -> np.ndarray:
    """The log of the kernel's mean float[...], from logs float[..., n], which are overwritten."""
    peak = log_kernel.max(axis=-1)
    log_kernel -= peak[..., None]
    return peak + np.log(np.exp(log_kernel, out=log_kernel).mean(axis=-1))


def _log_kernel(squares: np.ndarray, bandwidth: float, kernel: str) -> np.ndarray:
    """The log of the kernel at squared distances, in place where this saves memory."""
    if kernel == GAUSSIAN:
        squares *= -0.5 / bandwidth**2
        return squares
    np.maximum(squares, 0, out=squares)
    np.sqrt(squares, out=squares)
    squares *= -1 / bandwidth
    return squares
