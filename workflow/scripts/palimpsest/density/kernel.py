"""Kernel density estimates, exact and from nearest neighbours with a random sample.

The density of a corpus at a query is the mean of a kernel over the points of the corpus. The
kernels are 1 at distance 0 and are not normalised to integrate to 1, as in the paper's software
(`kernel_values`).

Source: LMD3: Language Model Data Density Dependence, sections 3 and 4 and appendix A.1.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.density.algorithm_1 import parts_of_density
from palimpsest.density.distances import checked, squared_distances
from palimpsest.density.kernel_values import LogSums, checked_setting, log_kernel_at
from palimpsest.density.kinds import EXPONENTIAL, GAUSSIAN
from palimpsest.density.sizes import Approximation
from palimpsest.errors import UserError


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
    kernel, bandwidth = checked_setting(kernel, bandwidth)
    queries, corpus = checked(queries=queries, corpus=corpus)
    return _log_mean(queries, corpus, bandwidth, kernel, len(corpus))


def log_density_of_others(
    points: ArrayLike, bandwidth: float, kernel: str = GAUSSIAN
) -> np.ndarray:
    """The log of the exact density, float64[N], of all other points at each of N points.

    A copy of a point is another point.

    Raises `UserError` if there is only one point, or for the reasons in `kernel_density`.
    """
    kernel, bandwidth = checked_setting(kernel, bandwidth)
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
    sums = LogSums(len(queries))
    for rows, points, squares in squared_distances(queries, corpus):
        log_kernel = log_kernel_at(squares, bandwidth, kernel)
        if without_itself:
            own = np.arange(max(rows.start, points.start), min(rows.stop, points.stop))
            log_kernel[own - rows.start, own - points.start] = -np.inf
        sums.add(rows, log_kernel)
    return sums.log_means(n)


def preferred_kernel(names: Collection[str]) -> str:
    return GAUSSIAN if GAUSSIAN in names else EXPONENTIAL
