"""Epsilon of every example: how well thresholds tell unlearned from retrained models."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

Thresholds = Literal["exact", "grid"]
KNOWN = ("exact", "grid")
DELTA = 1e-5
# What stands for an infinite epsilon: samples that an attack tells apart without an error.
CAP = 50.0
# On the grid, a sample that spans less than this share of the other is told apart by its width.
NARROW = 0.01


@dataclass(frozen=True)
class Attacks:
    """The strongest attack on every example, and what it does to the two samples.

    It says of a value v with lower < v <= upper that it is of a model of the kind `inside`, and of
    every other value that it is of the other kind. Positive means said to be retrained (the null
    hypothesis of section 2.2, that the model is unlearned, is rejected).

    epsilon : float64[examples] in [0, 50]
    family : str[examples]
        single: one threshold, `upper`, with `lower` at -inf; double: two; none: every attack is
        discarded, epsilon is 0; narrow: one sample spans less than 1 % of the other, epsilon is
        the cap (grid only). Of the last two, all else is NaN or empty.
    lower, upper : float64[examples], midpoints between neighbouring values of the samples
    inside : str[examples], unlearned or retrained
    fpr : float64[examples], share of the unlearned models said to be retrained
    fnr : float64[examples], share of the retrained models said to be unlearned
    """

    epsilon: np.ndarray
    family: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    inside: np.ndarray
    fpr: np.ndarray
    fnr: np.ndarray


def epsilon(
    unlearned: ArrayLike,
    retrained: ArrayLike,
    delta: float = DELTA,
    thresholds: Thresholds = "exact",
) -> np.ndarray:
    """Epsilon of every example: that of the strongest attack by one or two thresholds.

    0 if nothing tells the two kinds of models apart, 50 if one attack does without an error.
    An attack of which exactly one kind of error never happens is discarded (Algorithm 2). Epsilon
    is not negative by its definition, so a negative estimate counts as 0, as does an example on
    which every attack is discarded: no evidence against unlearning.

    Of samples of one and the same distribution, the strongest of so many attacks is not 0 either:
    by chance alone, k models of one kind stand next to one of the other, which is log(k). With
    exact thresholds that is 1.8 on average for 16 + 16 models, 2.2 for 64 + 64 and 2.5 for
    512 + 512; with those of the grid about 1.6. Compare with more retrained models in the place of
    the unlearned ones, or see `attackers.held_out_epsilon`.

    Parameters
    ----------
    unlearned, retrained : float[models, examples]
        What an attack sees of each model on each example, such as `logit_scaled_confidence`; as
        many examples in both, but not necessarily as many models.
    delta : float in [0, 1)
    thresholds : "exact" or "grid"
        exact: every interval of values, bounded or not, said to be of either kind: all attacks that
        the samples can tell apart. Only the order of the values matters. Both kinds are tried for
        each interval, as which sample is "peakiest" or has the larger median depends on how they
        are measured; of the two attacks the worse does no better than guessing.
        grid: as the released scoring code. One threshold in steps of about 0.01 over all
        values, from which on they are said to be of the kind with the larger median (unlearned if
        equal). Two thresholds in such steps, the upper one within 2 units of the largest value
        of the sample that spans less (if equal, of the smaller median) and their distance
        within 2 units of its span: inside is said to be of its kind. Where one sample spans
        less than 1 % of the other, epsilon is 50. Apart from this rule, exact is never less.

    Returns
    -------
    float64[examples] in [0, 50]

    Raises
    ------
    ValueError
        If an array is not [models, examples], has fewer than 2 models or a value that is not
        finite, the numbers of examples differ, delta is not in [0, 1), or thresholds are unknown.

    Source: Are we making progress in unlearning?, section 3.1.1, equation 1, Algorithm 2; the
    grid, the cap and the rule of 1 %: the released scoring code.
    """
    return attacks(unlearned, retrained, delta, thresholds).epsilon


def attacks(
    unlearned: ArrayLike,
    retrained: ArrayLike,
    delta: float = DELTA,
    thresholds: Thresholds = "exact",
) -> Attacks:
    """The strongest attack on every example; parameters and errors as of `epsilon`.

    Of equally strong attacks it is one with a single threshold if there is one, else the first
    by number of false positives. Thresholds of the grid are given as midpoints as well: they
    decide the same on the samples.
    """
    # Compiled code is slow to import, and who only wants points does without.
    from palimpsest.unlearning import sweeps

    unlearned, retrained = check_samples(unlearned, retrained)
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), not {delta}")
    if thresholds not in KNOWN:
        raise ValueError(f"unknown thresholds {thresholds!r}; known: {', '.join(KNOWN)}")
    upper = np.where(np.median(retrained, axis=0) > np.median(unlearned, axis=0), 1, 0)
    values, lower, upper, inside, errors = sweeps.strongest_attacks(
        np.sort(unlearned.T, axis=1),
        np.sort(retrained.T, axis=1),
        upper,
        thresholds == "exact",
        (*_logs(len(unlearned), delta), *_logs(len(retrained), delta)),
    )
    family = np.where(lower == -np.inf, "single", "double")
    family[values == -np.inf] = "none"
    values = np.clip(values, 0, CAP)
    if thresholds == "grid":
        narrow = _narrow(unlearned, retrained)
        family[narrow], values[narrow] = "narrow", CAP
    known = np.isin(family, ["single", "double"])
    return Attacks(
        values,
        family,
        np.where(known, lower, np.nan),
        np.where(known, upper, np.nan),
        np.where(known, np.array(["unlearned", "retrained"])[inside], ""),
        np.where(known, errors[:, 0] / len(unlearned), np.nan),
        np.where(known, errors[:, 1] / len(retrained), np.nan),
    )


def check_samples(unlearned: ArrayLike, retrained: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Both as float64[models, examples]; ValueError if they are not, or not of as many examples."""
    unlearned, retrained = _sample("unlearned", unlearned), _sample("retrained", retrained)
    if unlearned.shape[1] != retrained.shape[1]:
        raise ValueError(
            f"unlearned and retrained must be of the same examples: "
            f"{unlearned.shape[1]} and {retrained.shape[1]}"
        )
    return unlearned, retrained


def epsilon_of_rates(fpr: np.ndarray, fnr: np.ndarray, delta: float = DELTA) -> np.ndarray:
    """Equation 1 for rates above 0, within [0, 50]; float64[...]."""
    with np.errstate(invalid="ignore", divide="ignore"):
        both = np.log(1 - delta - fpr) - np.log(fnr), np.log(1 - delta - fnr) - np.log(fpr)
    # fmax ignores NaN, of logarithms below 0.
    return np.minimum(np.fmax(np.fmax(*both), 0), CAP)


def _logs(n_models: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """log(rate) and log(1 - delta - rate) of 0 to `n_models` errors, -inf where undefined."""
    rate = np.arange(n_models + 1) / n_models
    with np.errstate(divide="ignore"):
        return np.log(rate), np.log(np.maximum(1 - delta - rate, 0))


def _narrow(unlearned: np.ndarray, retrained: np.ndarray) -> np.ndarray:
    """bool[examples]: one sample has less than 1 % of the span of the other."""
    spans = np.ptp(unlearned, axis=0), np.ptp(retrained, axis=0)
    return np.minimum(*spans) < NARROW * np.maximum(*spans)


def _sample(name: str, values: ArrayLike) -> np.ndarray:
    """The values as float64[models, examples]; ValueError if they are not."""
    values = np.asarray(values, dtype=float)
    if values.ndim != 2 or len(values) < 2:
        raise ValueError(f"{name} must be [models, examples], 2 models or more: {values.shape}")
    if not np.isfinite(values).all():
        wrong = ~np.isfinite(values)
        raise ValueError(
            f"{name} must be finite; it is {values[wrong][0]} at {np.argwhere(wrong)[0].tolist()} "
            f"and not finite in {wrong.sum()} of {values.size} places"
        )
    return values
