"""Neurons as columns of activations, and those that no measure can be computed of."""

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.errors import UserError


def checked(activations: ArrayLike, fewest: int) -> np.ndarray:
    """Activations as an array float[samples, neurons].

    Raises
    ------
    UserError
        If there are no neurons, fewer samples than `fewest`, or another number of axes.
    """
    values = np.asarray(activations)
    if values.ndim != 2 or not np.issubdtype(values.dtype, np.floating):
        raise UserError(
            f"activations: an array {values.dtype}{list(values.shape)}; they must be "
            "float[samples, neurons]"
        )
    n_samples, n_neurons = values.shape
    if not n_neurons or n_samples < fewest:
        raise UserError(
            f"activations: {n_samples} samples of {n_neurons} neurons; at least {fewest} samples "
            "of one neuron are needed: raise the number of evaluated strings"
        )
    return values


def is_degenerate(activations: ArrayLike) -> np.ndarray:
    """Whether each neuron is constant or has a value that is not finite, bool[neurons].

    `activations` is float[samples, neurons].
    """
    values = checked(activations, 1)
    # A value that is not finite shows in an end, and the ends need no array of the whole size.
    with np.errstate(invalid="ignore", over="ignore"):
        low, high = values.min(axis=0), values.max(axis=0)
    return ~(np.isfinite(low) & np.isfinite(high)) | (low == high)
