"""Training-data density: how many training strings are near a string, and how near.

Source: LMD3: Language Model Data Density Dependence.
"""

from palimpsest.density.algorithm_1 import Parts, parts_of_density
from palimpsest.density.kernel import kernel_density, log_density_of_others, log_kernel_density
from palimpsest.density.kinds import EXPONENTIAL, GAUSSIAN, KERNELS
from palimpsest.density.neighbours import Neighbours, mean_distance, nearest
from palimpsest.density.sizes import EXACT, INDEXES, IVF, Approximation
from palimpsest.density.vectors_on_disk import Shards
from palimpsest.lazy_import import listing

__all__ = [
    "EXACT",
    "EXPONENTIAL",
    "GAUSSIAN",
    "INDEXES",
    "IVF",
    "KERNELS",
    "Approximation",
    "Neighbours",
    "Parts",
    "Shards",
    "kernel_density",
    "log_density_of_others",
    "log_kernel_density",
    "mean_distance",
    "nearest",
    "parts_of_density",
]

__dir__ = listing(__name__, __all__)
