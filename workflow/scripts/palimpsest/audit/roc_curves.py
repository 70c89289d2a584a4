"""ROC curves of attacks: how many members are found at how many false positives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from palimpsest.statistics import (
    CONFIDENCE,
    NO_INTERVAL,
    Interval,
    effective_groups,
    is_constant,
)

if TYPE_CHECKING:  # figures import this module, before any job
    import pandas as pd

DRAWS = 1000  # of the bootstrap
AUC = "auc"
TPR = "tpr@"  # before the share of false positives in the name of a statistic


def judged(scores: pd.DataFrame) -> pd.DataFrame:
    """The rows by which an attack is judged: of known members, and of others that are none nearly.

    `scores` has the columns `trained` and `duplicate`, see the table `attack_scores`.
    """
    return scores[scores["trained"].notna() & ~scores["duplicate"].astype(bool)]


class Curve(NamedTuple):
    """A ROC curve: float64[points] false and true positive rates, rising from (0, 0) to (1, 1)."""

    fpr: np.ndarray
    tpr: np.ndarray


def roc(score: np.ndarray, member: np.ndarray) -> Curve:
    """The ROC curve of scores, with a point for each distinct score.

    Parameters
    ----------
    score : float[texts], higher for texts that are taken for members
    member : bool[texts]; ValueError without a member or without a non-member
    """
    return Curve(*(rates[0] for rates in _curves(score, member, np.ones((1, len(score))))))


def auc(score: np.ndarray, member: np.ndarray) -> float:
    """The probability that a member has a higher score than a non-member; ties count a half."""
    return float(_auc(*_curves(score, member, np.ones((1, len(score)))))[0])


def tpr_at(score: np.ndarray, member: np.ndarray, fpr: float) -> float:
    """The share of members found at a share of false positives of `fpr` at most.

    NaN with so few non-members that a single one is a larger share.
    """
    if fpr * np.count_nonzero(~member) < 1:
        return np.nan
    return float(_tpr_at(*_curves(score, member, np.ones((1, len(score)))), fpr)[0])


def statistics(
    score: np.ndarray,
    member: np.ndarray,
    group: np.ndarray,
    false_positive_rates: Sequence[float],
    seed: int = 0,
) -> dict[str, Interval]:
    """AUC and true positive rates with 95 % intervals, by a bootstrap over groups of texts.

    Groups of members and groups of non-members are drawn anew separately; a group with both counts
    as two. An interval speaks of other texts, and not of other models. That of the AUC is symmetric
    on the scale of logits, which keeps it within 0 and 1. Where no draw differs from the others, as
    with perfect separation, the ends are exact ones, see `unanimous`.

    Parameters
    ----------
    score, member : see `roc`
    group : [texts], the names of groups whose texts are not independent
    """
    weights = _drawn(member, group, seed)
    curves = _curves(score, member, weights)
    n_members, n_others = (effective_groups(group[side]) for side in (member, ~member))
    value, drawn = auc(score, member), _auc(*curves)
    if is_constant(drawn):
        found = {AUC: Interval(value, *unanimous(value, min(n_members, n_others)))}
    else:
        found = {AUC: Interval(value, *_around(value, drawn))}
    for rate in false_positive_rates:
        value = tpr_at(score, member, rate)
        ends = (
            NO_INTERVAL[1:] if np.isnan(value) else _ends(_tpr_at(*curves, rate), value, n_members)
        )
        found[f"{TPR}{rate:g}"] = Interval(value, *ends)
    return found


def _drawn(member: np.ndarray, group: np.ndarray, seed: int) -> np.ndarray:
    """int[draws, texts]: how often each text is drawn, with its group."""
    chance = np.random.default_rng(seed)
    weights = np.zeros((DRAWS, len(member)))
    for side in (member, ~member):
        _, of_text = np.unique(group[side].astype(str), return_inverse=True)
        n = of_text.max() + 1
        weights[:, side] = chance.multinomial(n, np.full(n, 1 / n), DRAWS)[:, of_text]
    return weights


def _curves(
    score: np.ndarray, member: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """False and true positive rates float64[draws, points], for texts with weights[draws, texts].

    All curves have a point for each distinct score, after (0, 0).
    """
    if member.all() or not member.any():
        raise ValueError("a ROC curve needs members and non-members")
    order = np.argsort(-score, kind="stable")
    is_last = np.append(np.diff(score[order]) != 0, True)
    rates = []
    for side in (~member, member):
        counts = np.cumsum(weights[:, order] * side[order], axis=1)[:, is_last]
        rates.append(np.pad(counts / counts[:, -1:], ((0, 0), (1, 0))))
    return rates[0], rates[1]


def _auc(fpr: np.ndarray, tpr: np.ndarray) -> np.ndarray:
    return np.trapezoid(tpr, fpr, axis=1)


def _tpr_at(fpr: np.ndarray, tpr: np.ndarray, rate: float) -> np.ndarray:
    """float64[draws]: the highest true positive rate at `rate` false positives at most."""
    return np.where(fpr <= rate * (1 + 1e-12), tpr, 0.0).max(axis=1)


def _ends(drawn: np.ndarray, value: float, n: float) -> tuple[float, float]:
    beyond = (1 - CONFIDENCE) / 2
    lower, upper = np.quantile(drawn, [beyond, 1 - beyond])
    return unanimous(value, n) if is_constant([lower, upper]) else (float(lower), float(upper))


def _around(value: float, drawn: np.ndarray) -> tuple[float, float]:
    """The ends of the interval of an AUC between 0 and 1, from draws.

    Source: Pepe, The statistical evaluation of medical tests (2003), section 5.2.
    """
    from scipy.special import expit, logit, ndtri

    reach = ndtri((1 + CONFIDENCE) / 2) * drawn.std() / (value * (1 - value))
    return float(expit(logit(value) - reach)), float(expit(logit(value) + reach))


def unanimous(value: float, n: float) -> tuple[float, float]:
    """The exact 95 % interval of a mean of values from 0 to 1, if `n` of them are all alike.

    Another value has a probability of more than 1 − 0.025^(1/n) in at most 2.5 % of the cases. With
    perfect separation, pairs of a group of members and a group of others are such values, and there
    are as many independent ones as groups on the smaller side.
    """
    beyond = (1 - CONFIDENCE) / 2
    others = 1 - beyond ** (1 / n)
    return value * (1 - others), value * (1 - others) + others
