"""Epsilon of every example: how well attacks by thresholds tell unlearned from retrained models."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import Number, checked_number, checked_numbers
from palimpsest.errors import Notice
from palimpsest.statistics import with_exact_ties

Thresholds = Literal["exact", "grid"]
KNOWN = ("exact", "grid")
DELTA = 1e-5
DELTAS = Number(least=0, below=1)
# The value used for an infinite epsilon, that is, for an attack without errors.
CAP = 50.0
# On the grid, a sample that spans less than this share of the other counts as separated by width.
NARROW = 0.01


@dataclass(frozen=True)
class Attacks:
    """The strongest attack on every example, and its errors on the two samples.

    The attack says that a value v with lower < v <= upper comes from a model of the kind `inside`,
    and that every other value comes from the other kind. Positive means: said to be retrained (the
    null hypothesis of section 2.2, that the model is unlearned, is rejected).

    epsilon : float64[examples] in [0, 50]
    family : str[examples]
        single: one threshold, `upper`, with `lower` at -inf; double: two thresholds; none: every
        attack is discarded, and epsilon is 0; narrow (grid only): one sample spans less than 1 % of
        the other, and epsilon is the cap. For none and narrow, all other fields are NaN or empty.
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
    """Epsilon of every example, from the strongest attack with one or two thresholds.

    Epsilon is 0 if no attack can tell the two kinds of models apart, and 50 if an attack makes no
    error. If exactly one of the two kinds of error never happens, the attack is discarded
    (Algorithm 2). By its definition epsilon is not negative, so a negative estimate counts as 0. An
    example on which every attack is discarded also has epsilon 0: there is no evidence against
    unlearning.

    Even for two samples of the same distribution, epsilon is above 0, because it is the maximum
    over many attacks: by chance, k models of one kind are next to one model of the other kind,
    which gives log(k). With exact thresholds, the mean is 1.8 for 16 + 16 models, 2.2 for 64 + 64
    and 2.5 for 512 + 512; with the grid, about 1.6. For a baseline, give further retrained models
    in place of the unlearned ones, or see `attackers.held_out_epsilon`.

    Parameters
    ----------
    unlearned, retrained : float[models, examples]
        One number per model and example, such as `logit_scaled_confidence`. Both arrays have the
        same number of examples; their numbers of models may differ.
        Values of an example that differ by rounding only are equal.
    delta : float in [0, 1)
    thresholds : "exact" or "grid"
        exact: try every interval of values, bounded or not, for both kinds. These are all attacks
        that differ on the samples; only the order of the values matters. Both kinds are tried for
        each interval, because it depends on the measurement which sample is "peakiest" or has the
        larger median. The worse of the two attacks is never better than guessing.
        grid: the attacks of the released scoring code. One threshold, in steps of about 0.01 over
        all values; values at or above it are said to be of the kind with the larger median
        (unlearned if equal). Two thresholds in the same steps around the narrower sample (if
        equally wide, the sample with the smaller median): the upper threshold is within 2 units of
        its largest value, and the distance of the thresholds is within 2 units of its span; values
        inside are said to be of its kind. If one sample spans less than 1 % of the other, epsilon
        is 50. Except for this last rule, exact never gives a smaller epsilon than grid.

    Returns
    -------
    float64[examples] in [0, 50]

    Raises
    ------
    ValueError
        If an array is not [models, examples], has fewer than 2 models or a value that is not
        finite; if the numbers of examples differ; if delta is not in [0, 1); or if `thresholds` is
        unknown.

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
    """The strongest attack on every example; for parameters and errors see `epsilon`.

    Among equally strong attacks, an attack with a single threshold comes first, then the attack
    with the fewest false positives. Thresholds of the grid are also returned as midpoints between
    values, which make the same decisions on the samples.
    """
    # Imported here: compiled code is slow to import, and some callers only need `points`.
    from palimpsest.unlearning.attacks import sweeps

    unlearned, retrained = check_samples(unlearned, retrained)
    check_rules(delta, thresholds)
    upper = np.where(np.median(retrained, axis=0) > np.median(unlearned, axis=0), 1, 0)
    values, lower, upper, inside, errors = sweeps.strongest_attacks(
        np.sort(unlearned.T, axis=1),
        np.sort(retrained.T, axis=1),
        upper,
        thresholds == "exact",
        (*logs_of_rates(len(unlearned), delta), *logs_of_rates(len(retrained), delta)),
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


def check_rules(delta: float, thresholds: Thresholds = "exact") -> None:
    """ValueError if delta is not in [0, 1), or the thresholds are unknown."""
    checked_number("delta", delta, DELTAS)
    if thresholds not in KNOWN:
        raise ValueError(f"unknown thresholds {thresholds!r}; known: {', '.join(KNOWN)}")


def check_samples(unlearned: ArrayLike, retrained: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Both as float64[models, examples]; ValueError for other shapes or different examples.

    Values of an example that are equal up to rounding are made exactly equal.
    """
    unlearned, retrained = _sample("unlearned", unlearned), _sample("retrained", retrained)
    if unlearned.shape[1] != retrained.shape[1]:
        raise ValueError(
            f"unlearned and retrained must be of the same examples: "
            f"{unlearned.shape[1]} and {retrained.shape[1]}"
        )
    # Attacks look at the order of values, and rounding errors are no order.
    both = with_exact_ties(np.concatenate([unlearned, retrained]))
    return both[: len(unlearned)], both[len(unlearned) :]


def check_independent(unlearned: ArrayLike, retrained: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """As `check_samples`, for models that must be independent; warns of models that may be copies.

    A bootstrap has copies by its nature, and its scores say nothing of confidence.
    """
    unlearned, retrained = check_samples(unlearned, retrained)
    for name, sample in (("unlearned", unlearned), ("retrained", retrained)):
        if n_copies := len(sample) - len(np.unique(sample, axis=0)):
            what = (
                f"{name}: {n_copies} of {len(sample)} models have the values of another one for "
                "every example; give each model once: copies count as independent trainings, and "
                "make bounds and p-values wrong"
            )
            warnings.warn(Notice(what), stacklevel=3)
    return unlearned, retrained


def epsilon_of_rates(fpr: np.ndarray, fnr: np.ndarray, delta: float = DELTA) -> np.ndarray:
    """Equation 1 for rates above 0, within [0, 50]; float64[...]."""
    with np.errstate(invalid="ignore", divide="ignore"):
        both = np.log(1 - delta - fpr) - np.log(fnr), np.log(1 - delta - fnr) - np.log(fpr)
    # fmax ignores NaN, the logarithm of a negative number.
    return np.minimum(np.fmax(np.fmax(*both), 0), CAP)


def logs_of_rates(n_models: int, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """log(rate) and log(1 - delta - rate) for 0 to `n_models` errors; -inf where undefined."""
    return logs_of(np.arange(n_models + 1) / n_models, delta)


def logs_of(rate: np.ndarray, delta: float) -> tuple[np.ndarray, np.ndarray]:
    """log(rate) and log(1 - delta - rate), float64[...]; -inf where undefined."""
    with np.errstate(divide="ignore"):
        return np.log(rate), np.log(np.maximum(1 - delta - rate, 0))


def _narrow(unlearned: np.ndarray, retrained: np.ndarray) -> np.ndarray:
    """bool[examples]: one sample has less than 1 % of the span of the other."""
    spans = np.ptp(unlearned, axis=0), np.ptp(retrained, axis=0)
    return np.minimum(*spans) < NARROW * np.maximum(*spans)


def _sample(name: str, values: ArrayLike) -> np.ndarray:
    """The values as float64[models, examples]; ValueError if they are not."""
    values = checked_numbers(name, values, keeps_short=True)
    if values.ndim != 2 or len(values) < 2:
        raise ValueError(f"{name} must be [models, examples], 2 models or more: {values.shape}")
    if not np.isfinite(values).all():
        wrong = ~np.isfinite(values)
        raise ValueError(
            f"{name} must be finite; it is {values[wrong][0]} at {np.argwhere(wrong)[0].tolist()} "
            f"and not finite in {wrong.sum()} of {values.size} places"
        )
    return values
