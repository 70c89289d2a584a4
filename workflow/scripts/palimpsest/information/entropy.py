"""The entropy of a neuron's activations, from a histogram.

Source: the paper on information measures of neurons, appendix A.1 and algorithm 2. Its line 9
divides by the number of samples a second time; this is a slip, because the probabilities of line 5
are already divided by it.

The bins of the paper span the whole range, so one sample far from the others widens them all: of
256 normal samples, one at 10 standard deviations lowers the entropy by 0.7 nats. The trimmed
entropy, ours, has the bins of the range without the outermost 1 % at both ends.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike

from palimpsest.allowed import Number, checked_number
from palimpsest.information.neurons import checked, is_constant_neuron

BINS = 100
TRIM = 0.01  # share of the samples at each end of the range that are counted in the outermost bins
ALLOWED_BINS = Number(least=1, most=10**6, whole=True)  # more would not fit into memory
ALLOWED_TRIM = Number(least=0, below=0.5)
# Neurons whose histograms are counted together: they lie side by side in memory
TOGETHER = 64
NEAR_AN_EDGE = 1e-6  # in widths of a bin; rounding is far below it


def neuron_entropy(activations: ArrayLike, bins: int = BINS) -> np.ndarray:
    """The entropy of every neuron in nats, float64[neurons].

    The range of a neuron's activations is cut into bins of equal width, as `numpy.histogram` does.
    The entropy is that of the shares of samples in the bins: between 0 and log(bins).

    Parameters
    ----------
    activations : float[samples, neurons]; all other numbers are converted to float64 first
    bins : number of bins, from 1 to 1,000,000

    An entropy is 0 for a neuron that is constant up to rounding, and NaN for one with a value that
    is not finite.

    Raises `UserError` if there are no samples or no neurons, or if the number of bins is not
    allowed.
    """
    bins = checked_number("bins", bins, ALLOWED_BINS)
    values = np.ascontiguousarray(checked(activations, 1))
    low, high = (np.asarray(ends, dtype=float) for ends in (values.min(axis=0), values.max(axis=0)))
    with np.errstate(invalid="ignore", over="ignore"):
        is_finite = np.isfinite(high - low)
    # All samples of a constant neuron are in one bin.
    high = np.where(is_constant_neuron(values), low, high)
    counts = np.arange(len(values) + 1)
    logs = counts * np.log(np.maximum(counts, 1))
    return _entropy(values, low, high, is_finite, bins, logs)


def trimmed_entropy(activations: ArrayLike, bins: int = BINS, trim: float = TRIM) -> np.ndarray:
    """The entropy of every neuron on a range without outliers in nats, float64[neurons].

    As `neuron_entropy`, but the bins span the range from the quantile `trim` to the quantile
    1 - `trim` of a neuron's samples, and samples beyond it are counted in the outermost bins. Where
    these quantiles are equal, as those of a neuron that is nearly always 0, the bins span the whole
    range.

    Parameters and errors are those of `neuron_entropy`; `trim` is from 0 to below 0.5.
    """
    trim = checked_number("trim", trim, ALLOWED_TRIM)
    values = checked(activations, 1).astype(float)
    with np.errstate(invalid="ignore"):
        low, high = np.quantile(values, [trim, 1 - trim], axis=0)
        has_range = high > low
        return neuron_entropy(np.where(has_range, values.clip(low, high), values), bins)


@njit(cache=True, nogil=True)
def _entropy(values, low, high, is_finite, bins, logs):
    """Entropies float64[neurons].

    `low` and `high` float64[neurons] are the ends of the ranges; `logs` holds c log c for every
    count c of samples.
    """
    n, n_neurons = values.shape
    entropy = np.empty(n_neurons)
    edges, counts = np.empty((TOGETHER, bins + 2)), np.empty((TOGETHER, bins), np.int64)
    start, scale = np.empty(TOGETHER), np.empty(TOGETHER)
    for first in range(0, n_neurons, TOGETHER):
        some = min(TOGETHER, n_neurons - first)
        counts[:] = 0
        for j in range(some):
            neuron = first + j
            # All samples of a constant neuron, and of one that is not finite, are in the first bin.
            has_range = is_finite[neuron] and high[neuron] > low[neuron]
            start[j] = low[neuron] if has_range else 0.0
            scale[j] = bins / (high[neuron] - low[neuron]) if has_range else 0.0
            if np.isinf(scale[j]):  # a range that is too small to be cut into bins
                has_range, scale[j] = False, 0.0
            if has_range:
                edges[j, : bins + 1] = np.linspace(low[neuron], high[neuron], bins + 1)
        for i in range(n):
            for j in range(some):
                value = np.float64(values[i, first + j])
                position = (value - start[j]) * scale[j] if scale[j] > 0 else 0.0
                at = min(int(position), bins - 1)
                # Rounding may miss the bin by one, but only near an edge; the highest value is in
                # the last bin.
                if abs(position - np.rint(position)) < NEAR_AN_EDGE and scale[j] > 0:
                    at += (value >= edges[j, at + 1]) * (at < bins - 1) - (value < edges[j, at])
                counts[j, at] += 1
        for j in range(some):
            total = 0.0
            for at in range(bins):
                total += logs[counts[j, at]]
            entropy[first + j] = np.log(n) - total / n if is_finite[first + j] else np.nan
    return entropy
