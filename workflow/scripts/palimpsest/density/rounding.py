"""Distances and log densities that differ by rounding only.

The embeddings of users' texts are float32, so a distance is known to about 1e-6. A corpus that has
nothing in common with the queries is at distance sqrt(2) from each of them, up to this rounding.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.density.kinds import GAUSSIAN
from palimpsest.statistics import is_constant

# Vectors of length 1 are at most this far from each other.
OF_DISTANCE = 2.0


def of_log_density(kernel: str, bandwidth: float) -> float:
    """The magnitude of log densities, see `is_flat`: how much rounding of a distance changes them.

    The log of a gaussian kernel changes by distance / bandwidth^2 for each unit of distance, and
    that of an exponential one by 1 / bandwidth; the mean over the corpus adds its own rounding.
    """
    slope = OF_DISTANCE / bandwidth**2 if kernel == GAUSSIAN else 1 / bandwidth
    return 1 + slope * OF_DISTANCE


def is_flat(values: ArrayLike, magnitude: float | None = None) -> bool:
    """Whether values float[n] are equal up to rounding.

    `magnitude` is the largest number from which values of vectors in float32 were computed; None
    is for values in float64.
    """
    values = np.asarray(values, dtype=float)
    if magnitude is None or is_constant(values):
        return bool(is_constant(values))
    return bool(is_constant(values.astype(np.float32), magnitude, n_terms=1))
