"""What chance alone gives: statistics of models whose kinds are exchanged at random.

Attackers find differences between any two samples, so epsilon is above 0 and the forgetting quality
F below 1 even for two samples of retrained models. If unlearned models are like retrained models,
it does not matter which models are called unlearned. So the models are relabelled at random, all
strings together, and the statistic is computed again. This needs no assumption about distributions,
about the correlation between strings or about the attackers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import (
    SEEDS,
    WHOLE,
    WrongValue,
    checked_number,
    checked_numbers,
    shown,
)
from palimpsest.unlearning.attacks.quality import (
    BIN_WIDTH,
    forgetting_quality,
    largest_epsilon,
    points,
)
from palimpsest.unlearning.attacks.thresholds import (
    CAP,
    DELTA,
    NARROW,
    Thresholds,
    check_independent,
    check_rules,
    check_samples,
    logs_of_rates,
)

N_RELABELLINGS = 400  # the smallest p-value is 1 / 401
BAND = (2.5, 97.5)  # percentiles
# Values of a statistic that differ by a smaller share of the largest are equal, up to rounding.
TOLERANCE = 1e-9


def permutation_null(
    unlearned: ArrayLike,
    retrained: ArrayLike,
    statistic: Callable[[np.ndarray, np.ndarray], ArrayLike],
    n: int = N_RELABELLINGS,
    seed: int = 0,
) -> tuple[np.ndarray, np.ndarray | float]:
    """Null distribution and p-value of a statistic that is larger for models easier to tell apart.

    Under the null hypothesis that unlearned models are distributed as retrained models, a p-value
    of at most a occurs with probability a or less, for any statistic and any number of models. The
    models must be independent trainings: copies of one model, as in a bootstrap, break this.

    Parameters
    ----------
    unlearned : float[U models, examples]
    retrained : float[R models, examples]
    statistic : function of float[U, examples] and float[R, examples]
        Its result is a number or float[k], never NaN.
    n : int, number of random relabellings, at least 1
    seed : int, 0 or more
        The same seed and numbers of models give the same relabellings.

    Returns
    -------
    null : float64[n], or float64[n, k]
    p : float, or float64[k], at least 1 / (n + 1)
        (1 + number of null values at or above the observed value) / (n + 1).

    Raises
    ------
    ValueError
        For arrays as in `epsilon`, if n or the seed is not allowed, or if the statistic is no
        number.

    Source: Phipson and Smyth, Permutation p-values should never be zero, Statistical Applications
    in Genetics and Molecular Biology 9 (2010).
    """
    unlearned, retrained = check_independent(unlearned, retrained)
    labels = relabellings(len(unlearned), len(retrained), n, seed)
    if not callable(statistic):
        raise WrongValue(f"statistic: is {shown(statistic)} and must be a function of two samples")
    observed = checked_numbers("statistic", statistic(unlearned, retrained))
    models = np.concatenate([unlearned, retrained])
    null = np.array(
        [statistic(models[~is_retrained], models[is_retrained]) for is_retrained in labels],
        dtype=float,
    )
    if np.isnan(observed).any() or np.isnan(null).any():
        raise ValueError("the statistic must be a number for every relabelling; it is NaN")
    return null, share_as_large(null, observed)


def relabellings(n_unlearned: int, n_retrained: int, n: int, seed: int) -> np.ndarray:
    """Random labels bool[n, models], True for retrained; as many of each kind as there are."""
    checked_number("n", n, WHOLE)
    checked_number("seed", seed, SEEDS)
    labels = np.repeat([False, True], [n_unlearned, n_retrained])
    return np.random.default_rng(seed).permuted(np.tile(labels, (n, 1)), axis=1)


def share_as_large(null: np.ndarray, observed: np.ndarray | float) -> np.ndarray | float:
    """P-values float[...] of observed values [...] from a null [n, ...]: (1 + #) / (n + 1)."""
    size = np.abs(np.where(np.isfinite(null), null, 0.0)).max(axis=0, initial=0.0)
    close = np.isclose(null, observed, rtol=TOLERANCE, atol=TOLERANCE * size)
    p = (1 + ((null >= observed) | close).sum(axis=0)) / (len(null) + 1)
    return p if np.ndim(p) else float(p)


def relabelled_epsilons(
    unlearned: ArrayLike,
    retrained: ArrayLike,
    delta: float = DELTA,
    thresholds: Thresholds = "exact",
    n: int = N_RELABELLINGS,
    seed: int = 0,
) -> np.ndarray:
    """Epsilons float64[n, examples] of relabelled models, by compiled code.

    They are exactly the null of `permutation_null` with `epsilon` as the statistic, n and seed.
    For parameters and errors see `epsilon` and `permutation_null`.
    """
    # Imported here: compiled code is slow to import.
    from palimpsest.unlearning.attacks import relabelled_sweeps

    unlearned, retrained = check_samples(unlearned, retrained)
    check_rules(delta, thresholds)
    labels = relabellings(len(unlearned), len(retrained), n, seed)
    models = np.concatenate([unlearned, retrained]).T
    order = np.argsort(models, axis=1)
    found = relabelled_sweeps.epsilons(
        np.take_along_axis(models, order, axis=1),
        order,
        labels.astype(np.uint8),
        thresholds == "exact",
        NARROW,
        (*logs_of_rates(len(unlearned), delta), *logs_of_rates(len(retrained), delta)),
    )
    return np.clip(found, 0, CAP)


@dataclass(frozen=True)
class AgainstChance:
    """Epsilons and the forgetting quality of a method, compared with relabelled models.

    epsilon : float64[examples] in [0, 50]
    floor : float64[examples]
        Mean epsilon of relabelled models. Here and in `excess`, an epsilon counts as at most
        `largest_epsilon`, because the cap of 50 is a convention and not a measurement.
    excess : float64[examples], epsilon minus floor; its mean is 0 for perfect unlearning
    p : float64[examples], p-values of the epsilons
    q : float64[examples]
        The same after Benjamini-Hochberg: among the strings with q <= 0.05, at most 5 % are wrong
        on average, if p-values of different strings are independent or positively dependent.
    quality : float in [0, 1], forgetting quality F
    null_quality : float64[n], F of relabelled models
    quality_p : float, p-value of F; a low F means that models are easy to tell apart
    """

    epsilon: np.ndarray
    floor: np.ndarray
    excess: np.ndarray
    p: np.ndarray
    q: np.ndarray
    quality: float
    null_quality: np.ndarray
    quality_p: float

    @property
    def null_mean(self) -> float:
        """Mean F of relabelled models: what perfect unlearning gives on average."""
        return float(self.null_quality.mean())

    @property
    def null_band(self) -> tuple[float, float]:
        """The 2.5 % and 97.5 % quantiles of F of relabelled models."""
        lower, upper = np.percentile(self.null_quality, BAND)
        return float(lower), float(upper)


def against_chance(
    unlearned: ArrayLike,
    retrained: ArrayLike,
    delta: float = DELTA,
    thresholds: Thresholds = "exact",
    bin_width: float = BIN_WIDTH,
    n: int = N_RELABELLINGS,
    seed: int = 0,
) -> AgainstChance:
    """Compare epsilons and the forgetting quality with those of relabelled models.

    Parameters
    ----------
    unlearned, retrained : float[models, examples], independent models, such as confidences
    delta, thresholds : see `epsilon`
    bin_width : see `points`
    n, seed : see `permutation_null`

    Raises
    ------
    ValueError
        See `epsilon`, `points` and `permutation_null`.

    Source: Benjamini and Hochberg, Controlling the false discovery rate, Journal of the Royal
    Statistical Society B 57 (1995), for q; `permutation_null` for p.
    """
    from scipy.stats import false_discovery_control

    from palimpsest.unlearning.attacks.thresholds import epsilon

    found = epsilon(unlearned, retrained, delta, thresholds)
    null = relabelled_epsilons(unlearned, retrained, delta, thresholds, n, seed)
    n_models = min(len(unlearned), len(retrained))
    most = largest_epsilon(n_models)
    floor = np.minimum(null, most).mean(axis=0)
    p = share_as_large(null, found)
    quality = forgetting_quality(found, n_models, bin_width)
    null_quality = points(null, n_models, bin_width).mean(axis=1)
    return AgainstChance(
        found,
        floor,
        np.minimum(found, most) - floor,
        p,
        false_discovery_control(p),
        quality,
        null_quality,
        share_as_large(-null_quality, -quality),
    )


def relative_quality(quality: float, quality_none: float, null_mean: float) -> float:
    """The place of F between doing nothing (0) and models of one distribution (1).

    It is below 0 if the method's models are easier to tell apart than the original models, and may
    be above 1 by chance. NaN if doing nothing is not worse than the null mean: then no method can
    be placed.
    """
    if not quality_none < null_mean:
        return np.nan
    return (quality - quality_none) / (null_mean - quality_none)
