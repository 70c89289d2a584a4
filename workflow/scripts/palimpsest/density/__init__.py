"""Training-data density: how many training strings are near a string, and how near.

Source: LMD3: Language Model Data Density Dependence.
"""

from palimpsest.density.kernel import (
    EXPONENTIAL,
    GAUSSIAN,
    KERNELS,
    Approximation,
    Parts,
    kernel_density,
    log_kernel_density,
    parts_of_density,
)
from palimpsest.density.neighbours import mean_distance, nearest

__all__ = [
    "EXPONENTIAL",
    "GAUSSIAN",
    "KERNELS",
    "Approximation",
    "Parts",
    "kernel_density",
    "log_kernel_density",
    "mean_distance",
    "nearest",
    "parts_of_density",
]
