"""The kernels, their settings, and sums of kernels whose logs do not overflow.

    gaussian     exp(-|q - x|^2 / (2 h^2))
    exponential  exp(-|q - x| / h)

Source: LMD3: Language Model Data Density Dependence, section 3 and appendix A.10.2.
"""

import numpy as np

from palimpsest.allowed import Number, checked_number, checked_word
from palimpsest.density.distances import LARGEST
from palimpsest.density.kinds import GAUSSIAN, KERNELS

Setting = tuple[str, float]  # a kernel and its bandwidth
# A narrower kernel sees only copies, and a wider kernel sees no distances. Squares stay finite.
BANDWIDTHS = Number(least=1e-9, most=LARGEST[np.dtype(np.float64)])


class LogSums:
    """The log of a kernel's sum over a corpus, for every query, block by block."""

    def __init__(self, n_queries: int):
        self.largest = np.full(n_queries, -np.inf)
        self.total = np.zeros(n_queries)

    def add(self, rows: slice, log_kernel: np.ndarray) -> None:
        """Add the logs float[rows, points] of a block, which are overwritten."""
        peak = np.maximum(self.largest[rows], log_kernel.max(axis=1))
        log_kernel -= peak[:, None].astype(log_kernel.dtype)
        np.exp(log_kernel, out=log_kernel)
        before = self.total[rows] * np.exp(self.largest[rows] - peak)
        self.total[rows] = before + log_kernel.sum(axis=1)
        self.largest[rows] = peak

    def log_means(self, n: int) -> np.ndarray:
        """The log float64[queries] of the sums, divided by n."""
        return self.largest + np.log(self.total) - np.log(n)


def checked_setting(kernel: str, bandwidth: float) -> Setting:
    kernel = checked_word("kernel", kernel, KERNELS)
    return kernel, checked_number("bandwidth", bandwidth, BANDWIDTHS)


def log_of_mean(log_kernel: np.ndarray) -> np.ndarray:
    """The log of the kernel's mean float[...], from logs float[..., n], which are overwritten."""
    peak = log_kernel.max(axis=-1)
    log_kernel -= peak[..., None]
    return peak + np.log(np.exp(log_kernel, out=log_kernel).mean(axis=-1))


def log_kernel_at(squares: np.ndarray, bandwidth: float, kernel: str) -> np.ndarray:
    """The log of the kernel at squared distances, in place where this saves memory."""
    if kernel == GAUSSIAN:
        squares *= -0.5 / bandwidth**2
        return squares
    np.maximum(squares, 0, out=squares)
    np.sqrt(squares, out=squares)
    squares *= -1 / bandwidth
    return squares
