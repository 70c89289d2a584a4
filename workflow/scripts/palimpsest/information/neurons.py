"""Neurons as columns of activations, and neurons for which no measure can be computed."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import numeric
from palimpsest.errors import Notice, UserError
from palimpsest.statistics import is_constant, rounding_error, terms_of

CLOSE = 1e-6  # of a neuron's range: samples that differ by less in all neurons are copies
# Share of the samples that may be copies: they raise mutual information by 0.02 nats
MOST_COPIES = 0.05


class CopiesWarning(Notice):
    """Samples of activations are copies of each other."""


def checked(activations: ArrayLike, fewest: int) -> np.ndarray:
    """Activations as an array float[samples, neurons], in float32 if they are, or float64.

    A neuron of float16 that is constant up to its rounding is made constant: in float64, its
    rounding would no longer show.

    Raises `UserError` if they are not numbers, if there are no neurons, fewer samples than
    `fewest`, or another number of axes.
    """
    try:
        values = numeric(np.asarray(activations))
    except (TypeError, ValueError, OverflowError):
        raise UserError(
            "activations: are not a table of numbers; they must be float[samples, neurons]"
        ) from None
    if values.ndim != 2:
        raise UserError(
            f"activations: an array {values.dtype}{list(values.shape)}; they must be "
            "float[samples, neurons]"
        )
    is_half = values.dtype == np.float16
    if values.dtype != np.float32:
        values = values.astype(float)
    n_samples, n_neurons = values.shape
    if not n_neurons or n_samples < fewest:
        raise UserError(
            f"activations: {n_samples} samples of {n_neurons} neurons; at least {fewest} samples "
            "of one neuron are needed: raise the number of evaluated strings"
        )
    if is_half:
        with np.errstate(invalid="ignore"):
            rounding = rounding_error(np.abs(values).max(axis=0), terms_of(np.float16))
            is_flat = np.isfinite(rounding) & (np.ptp(values, axis=0) <= rounding)
        values[:, is_flat] = values[0, is_flat]
    return values


def is_degenerate(activations: ArrayLike) -> np.ndarray:
    """Whether each neuron is constant up to rounding or not finite, bool[neurons].

    `activations` is float[samples, neurons].
    """
    values = checked(activations, 1)
    # A value that is not finite shows in an end, and the ends need no array of the whole size.
    with np.errstate(invalid="ignore", over="ignore"):
        low, high = values.min(axis=0), values.max(axis=0)
    return ~(np.isfinite(low) & np.isfinite(high)) | is_constant_neuron(values)


def is_constant_neuron(values: np.ndarray) -> np.ndarray:
    """Whether each neuron is constant up to rounding, bool[neurons].

    `values` comes from `checked`. Rounding is that of the type in which a model computed them.
    """
    # A single term: that of many would be half a per cent of a large float32.
    return is_constant(values, n_terms=1)


def share_of_copies(activations: ArrayLike) -> float:
    """The share of samples that occur more than once, all neurons together, up to rounding.

    The rounding may be that of a shorter type than the one in which the activations are given.
    `activations` is float[samples, neurons], without degenerate neurons. For example, the share is
    0.5 if two of four samples are equal.
    """
    values = checked(activations, 1)
    # Copies have the same sum, so they are neighbours in the order of the sums. The weights keep
    # other samples from having the same sum, too.
    largest = np.abs(values).max(axis=0)
    scaled = values / np.maximum(largest, np.finfo(values.dtype).tiny)
    sums = scaled @ np.random.default_rng(0).normal(size=values.shape[1])
    rising = values[np.argsort(sums)]
    rounding = np.maximum(rounding_error(largest, 1, values.dtype), CLOSE * np.ptp(values, axis=0))
    is_next_equal = (np.abs(rising[1:] - rising[:-1]) <= rounding).all(axis=1)
    return float((np.append(is_next_equal, False) | np.append(False, is_next_equal)).mean())
