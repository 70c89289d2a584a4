"""Whether unlearned models are further from retrained models than innocent models are.

Innocent models are retrained ones, too, but differ from the reference in a way that nobody would
call a failure to unlearn, such as another batch size. A test of "the same as retraining" finds any
difference if there are enough models. Here the question is relative: is the difference larger than
an innocent one?
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import checked_numbers
from palimpsest.statistics import is_constant, power_of_two, rounding_error
from palimpsest.unlearning.attacks.permutation import N_RELABELLINGS, relabellings, share_as_large


class Relative(NamedTuple):
    """Distances from retrained models, and the test whether the first is the larger one.

    unlearned, innocent : float, energy distances; about 0 for models like retrained ones
    p : float, at least 1 / (n + 1); small if unlearned models are further away
    """

    unlearned: float
    innocent: float
    p: float


def relative_test(
    unlearned: ArrayLike,
    innocent: ArrayLike,
    retrained: ArrayLike,
    n: int = N_RELABELLINGS,
    seed: int = 0,
) -> Relative:
    """Test whether unlearned models are further from retrained models than innocent models are.

    The distance of two samples is the energy distance of the models' confidences in all examples,
    each divided by its standard deviation over all three samples. The statistic is the difference
    of the two distances, divided by its standard error (from its linear approximation). Unlearned
    and innocent models are relabelled at random; the retrained models stay.

    The p-value is the larger of two. The share of the relabellings with a statistic as large is
    right if unlearned models are distributed as innocent ones: at most a with probability a or
    less, for any number of models. It is wrong if they differ in opposite directions from retrained
    models, by the same distance: then a mixture of the two may be like retrained models, and the
    statistic varies too little. The p-value of Student's distribution is right for many models if
    the two distributions differ, but not if all three are equal.

    Parameters
    ----------
    unlearned, innocent, retrained : float[models, examples], independent models
    n, seed : see `permutation_null`

    Raises
    ------
    ValueError
        If a sample is not [2 or more models, examples] or not finite, or if the examples differ.

    Source: relative similarity, Bounliphone et al., A test of relative similarity for model
    selection in generative models, ICLR 2016, with the energy distance (Szekely and Rizzo, Journal
    of Statistical Planning and Inference 143, 2013) in the place of the MMD; relabelling with a
    studentised statistic, Chung and Romano, Annals of Statistics 41 (2013).
    """
    samples = _checked(unlearned, innocent, retrained)
    n_unlearned, n_innocent = len(samples[0]), len(samples[1])
    pooled = np.concatenate(samples)
    # An example without any spread adds no distance.
    unit = power_of_two(pooled, axis=0)
    spread = np.where(is_constant(pooled), np.inf, (pooled / unit).std(axis=0))
    scaled = [sample / unit / spread for sample in samples]
    both, reference = np.concatenate(scaled[:2]), scaled[2]
    across, inside = _distances(both, reference), _distances(both, both)
    # The first labelling is the true one; True is for innocent models, which come second.
    true = np.repeat([[False, True]], [n_unlearned, n_innocent], axis=1)
    labels = np.concatenate([true, relabellings(n_unlearned, n_innocent, n, seed)])
    values = _studentised(across, inside, labels)
    within = _mean_of_pairs(_distances(reference, reference))
    return Relative(
        _energy(across[~labels[0]], inside[np.ix_(~labels[0], ~labels[0])], within),
        _energy(across[labels[0]], inside[np.ix_(labels[0], labels[0])], within),
        max(share_as_large(values[1:], values[0]), _student_p(values[0], samples)),
    )


def _student_p(value: float, samples: list[np.ndarray]) -> float:
    """P-value of the statistic by Student's distribution, for the smallest sample."""
    from scipy.special import stdtr

    return float(stdtr(min(map(len, samples)) - 1, -value))


def _checked(*samples: ArrayLike) -> list[np.ndarray]:
    """The samples as float64; ValueError if they do not fit together."""
    found = [checked_numbers("a sample", sample) for sample in samples]
    for sample in found:
        if sample.ndim != 2 or len(sample) < 2 or not sample.shape[1]:
            raise ValueError(f"a sample must be [2 or more models, examples], not {sample.shape}")
        if not np.isfinite(sample).all():
            raise ValueError("all samples must be finite")
    if len({sample.shape[1] for sample in found}) > 1:
        raise ValueError("all samples must have the same examples")
    return found


def _distances(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Euclidean distances float64[models of one, models of other]."""
    from scipy.spatial.distance import cdist

    return cdist(one, other)


def _energy(across: np.ndarray, inside: np.ndarray, within: float) -> float:
    """The unbiased estimate of the energy distance between a sample and the reference."""
    return float(2 * across.mean() - _mean_of_pairs(inside) - within)


def _mean_of_pairs(inside: np.ndarray) -> float:
    """Mean distance of two different models."""
    n = len(inside)
    return inside.sum() / (n * (n - 1))


def _studentised(across: np.ndarray, inside: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Difference of the distances by its standard error, float64[labellings].

    `across` is float[models, reference], `inside` float[models, models] and `labels`
    bool[labellings, models]. Without any variance, the result is 0 if the difference is, and
    otherwise infinite.
    """
    differences, variances, to_reference = [], [], []
    own = across.mean(axis=1)
    for chosen in (~labels, labels):
        weights = chosen / chosen.sum(axis=1, keepdims=True)
        size = chosen[0].sum()
        # The mean distance of each model to the others of its sample
        neighbours = weights @ inside * (size / (size - 1))
        differences.append((weights * (2 * own - neighbours)).sum(axis=1))
        effects = 2 * (own - neighbours)
        centred = effects - (weights * effects).sum(axis=1, keepdims=True)
        variances.append((weights * centred**2).sum(axis=1) / (size - 1))
        to_reference.append(weights @ across)
    of_reference = 2 * (to_reference[0] - to_reference[1])
    variances.append(of_reference.var(axis=1, ddof=1) / across.shape[1])
    difference, error = differences[0] - differences[1], np.sqrt(sum(variances))
    rounding = rounding_error(max(across.max(), inside.max()), max(across.shape))
    certain = np.where(np.abs(difference) <= rounding, 0.0, np.copysign(np.inf, difference))
    return np.divide(difference, error, out=certain, where=error > rounding)
