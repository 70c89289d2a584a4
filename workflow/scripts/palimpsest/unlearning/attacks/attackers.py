"""Held-out attackers: their thresholds are fitted on some models and judged on other models."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from palimpsest.statistics import is_constant, standard_deviation
from palimpsest.unlearning.attacks.thresholds import (
    DELTA,
    Attacks,
    attacks,
    check_samples,
    epsilon_of_rates,
)

# The mass of a Gaussian is never 0, although it may be too small for a float. A rate as small as
# this one always gives the cap of epsilon.
LEAST_RATE = np.finfo(float).tiny


def held_out_epsilon(
    unlearned_fit: ArrayLike,
    retrained_fit: ArrayLike,
    unlearned_evaluation: ArrayLike,
    retrained_evaluation: ArrayLike,
    delta: float = DELTA,
) -> np.ndarray:
    """Find the strongest attack on some models; the epsilon of this attack on other models.

    The attack is found by an exact sweep over the models for fitting. Its error rates are measured
    on the models for evaluation. Each rate is smoothed by a Gaussian kernel density estimate with
    Scott's bandwidth (standard deviation times n^(-1/5)) for each kind of model, so that a rate is
    not 0 only because there are few models. A sample without spread is not smoothed: this is the
    limit of a bandwidth towards 0. An attack that is right about such a sample has the smallest
    possible error rate. Epsilon is then the cap, if the attack is better than guessing on the other
    sample. If fitting finds no attack, epsilon is 0.

    Parameters
    ----------
    unlearned_fit, retrained_fit, unlearned_evaluation, retrained_evaluation :
        float[models, examples]; the numbers of examples are equal, the numbers of models may differ
    delta : float in [0, 1)

    Returns
    -------
    float64[examples] in [0, 50]

    Raises
    ------
    ValueError
        See `epsilon`; also if fitting and evaluation have different numbers of examples.

    Source: Are we making progress in unlearning?, sections A.13 and A.14; the bandwidth is the
    default of scipy.stats.gaussian_kde.
    """
    chosen = attacks(unlearned_fit, retrained_fit, delta)
    unlearned, retrained = check_samples(unlearned_evaluation, retrained_evaluation)
    if unlearned.shape[1] != len(chosen.epsilon):
        raise ValueError(
            f"fitting and evaluation must be of the same examples: "
            f"{len(chosen.epsilon)} and {unlearned.shape[1]}"
        )
    fpr = _errors("unlearned", unlearned, chosen)
    fnr = _errors("retrained", retrained, chosen)
    return np.where(chosen.family == "none", 0.0, epsilon_of_rates(fpr, fnr, delta))


def _errors(kind: str, values: np.ndarray, chosen: Attacks) -> np.ndarray:
    """Smoothed share of the models of one kind that the attack misclassifies, float64[examples]."""
    within, beyond = _masses(values, chosen.lower, chosen.upper)
    return np.maximum(np.where(chosen.inside == kind, beyond, within), LEAST_RATE)


def _masses(
    values: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Masses of density estimates inside and outside of intervals, twice float64[examples].

    The mass of a Gaussian kernel density estimate is the mean of the masses of its kernels. The two
    masses are computed separately: 1 minus a mass near 1 would lose all digits.
    """
    spread = np.where(is_constant(values), 0.0, standard_deviation(values))
    bandwidth = spread * len(values) ** (-1 / 5)
    above_lower = _in_bandwidths(values - lower, bandwidth)
    below_upper = _in_bandwidths(upper - values, bandwidth)
    # Either end gives the same mass. From the nearer end, no term is close to 1.
    near, far = np.minimum(above_lower, below_upper), np.maximum(above_lower, below_upper)
    within = ndtr(near) - ndtr(-far)
    beyond = ndtr(-above_lower) + ndtr(-below_upper)
    return within.mean(axis=0), beyond.mean(axis=0)


def _in_bandwidths(distance: np.ndarray, bandwidth: np.ndarray) -> np.ndarray:
    """Distances in units of the bandwidth; for a bandwidth of 0: -inf, 0 or inf, by their sign."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance == 0, 0.0, distance / bandwidth)
