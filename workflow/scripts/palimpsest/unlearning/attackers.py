"""Attackers that choose their thresholds on some models and are judged on others."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr

from palimpsest.unlearning.thresholds import (
    DELTA,
    Attacks,
    attacks,
    check_samples,
    epsilon_of_rates,
)

# A Gaussian reaches everywhere: a mass too small for a float is not 0. So small a rate gives the
# cap of epsilon, whatever it is.
LEAST_RATE = np.finfo(float).tiny


def held_out_epsilon(
    unlearned_fit: ArrayLike,
    retrained_fit: ArrayLike,
    unlearned_evaluation: ArrayLike,
    retrained_evaluation: ArrayLike,
    delta: float = DELTA,
) -> np.ndarray:
    """Epsilon of the attack that is strongest on some models, as it fares on other models.

    The attack comes from an exact sweep of the models for fitting. Its rates of errors are those on
    the models for evaluation, smoothed by a Gaussian kernel density estimate with Scott's bandwidth
    (standard deviation times n^(-1/5)) for each kind of model, so that no rate is 0 for want of
    models. A sample without spread stays where it is, the limit of ever smaller bandwidths: an
    attack that is right about it has a rate of errors as small as can be, so epsilon is the cap
    if the attack is any better than guessing on the other sample. Where fitting finds no attack,
    epsilon is 0.

    Parameters
    ----------
    unlearned_fit, retrained_fit, unlearned_evaluation, retrained_evaluation :
        float[models, examples]; as many examples in all, but not necessarily as many models.
    delta : float in [0, 1)

    Returns
    -------
    float64[examples] in [0, 50]

    Raises
    ------
    ValueError
        As of `epsilon`, or if the two pairs are of different numbers of examples.

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
    """float64[examples]: smoothed share of the models of a kind said to be of the other."""
    within, beyond = _masses(values, chosen.lower, chosen.upper)
    return np.maximum(np.where(chosen.inside == kind, beyond, within), LEAST_RATE)


def _masses(
    values: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """float64[examples], twice: masses of density estimates inside and outside of intervals.

    The mass of a Gaussian kernel density estimate is the mean of those of its kernels. Each mass
    is added up by itself, as the smaller of two that sum to 1 would have no digits left.
    """
    bandwidth = values.std(axis=0, ddof=1) * len(values) ** (-1 / 5)
    above_lower = _in_bandwidths(values - lower, bandwidth)
    below_upper = _in_bandwidths(upper - values, bandwidth)
    # The same from either end; from the one that is nearer, neither term is close to 1.
    near, far = np.minimum(above_lower, below_upper), np.maximum(above_lower, below_upper)
    within = ndtr(near) - ndtr(-far)
    beyond = ndtr(-above_lower) + ndtr(-below_upper)
    return within.mean(axis=0), beyond.mean(axis=0)


def _in_bandwidths(distance: np.ndarray, bandwidth: np.ndarray) -> np.ndarray:
    """Distances in bandwidths; of a bandwidth of 0 infinite, with their sign, or 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(distance == 0, 0.0, distance / bandwidth)
