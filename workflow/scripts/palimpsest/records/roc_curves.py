"""ROC curves of attacks: how many members are found at how many false positives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from palimpsest.allowed import CONFIDENCES
from palimpsest.arguments import Names, Numbers, Truths, takes
from palimpsest.lazy_import import lazy_import
from palimpsest.records.intervals import share_below_quantile
from palimpsest.short_repr import short_repr
from palimpsest.statistics import (
    CONFIDENCE,
    NO_INTERVAL,
    Interval,
    effective_groups,
    is_constant,
)

pd = lazy_import("pandas")  # figures import this module, before any job

FEWEST_GROUPS = 2  # independent ones on each side, without which there is no interval
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

    __repr__ = short_repr

    def to_frame(self) -> pd.DataFrame:
        """A row per point: `fpr` and `tpr`."""
        return pd.DataFrame(self._asdict())


@takes(score=Numbers("texts"), member=Truths("texts"))
def roc(score: np.ndarray, member: np.ndarray) -> Curve:
    """The ROC curve of scores, with a point for each distinct score.

    Parameters
    ----------
    score : float[texts], higher for texts that are taken for members
    member : bool[texts]; ValueError without a member or without a non-member
    """
    _check_sides(member)
    order = np.argsort(-score, kind="stable")
    is_last = np.append(np.diff(score[order]) != 0, True)
    rates = (np.cumsum(side[order])[is_last] / side.sum() for side in (~member, member))
    return Curve(*(np.append(0.0, rate) for rate in rates))


@takes(score=Numbers("texts"), member=Truths("texts"))
def auc(score: np.ndarray, member: np.ndarray) -> float:
    """The probability that a member has a higher score than a non-member; ties count a half."""
    _check_sides(member)
    return float(_shares_below(score[~member], score[member]).mean())


@takes(score=Numbers("texts"), member=Truths("texts"), fpr=CONFIDENCES, group=Names("texts"))
def tpr_at(
    score: np.ndarray, member: np.ndarray, fpr: float, group: np.ndarray | None = None
) -> float:
    """The share of members with scores above that of a non-member, see `rank_at`.

    A further non-member is above, too, with a probability of `fpr` at most. NaN with so few
    non-members that there is no such score.

    Parameters
    ----------
    score, member : see `roc`
    group : [texts], the names of groups whose texts are not independent; each text is one by
        default
    """
    _check_sides(member)
    others = score[~member]
    n_groups = len(others) if group is None else effective_groups(group[~member])
    rank = rank_at(fpr, len(others), n_groups)
    return float((score[member] > np.sort(others)[-rank]).mean()) if rank else np.nan


def rank_at(rate: float, n: int, n_groups: float) -> int:
    """The rank of the non-member whose score a further one exceeds in a share of `rate` at most.

    It exceeds the r-th highest of n independent scores with a probability of r / (n + 1). Scores of
    a group can all be the highest, so r - 1 of n scores count as that share of the groups. 0 if
    even the highest of all is exceeded more often.

    Parameters
    ----------
    n, n_groups : non-members, and the number of independent ones, see `effective_groups`
    """
    before = np.arange(n) * (n_groups / n)
    return int(((before + 1) / (n_groups + 1) <= rate).sum())


@takes(
    score=Numbers("texts"),
    member=Truths("texts"),
    group=Names("texts"),
    false_positive_rates=Numbers("rates"),
)
def statistics(
    score: np.ndarray,
    member: np.ndarray,
    group: np.ndarray,
    false_positive_rates: Sequence[float],
) -> dict[str, Interval]:
    """AUC and true positive rates with 95 % intervals over groups of texts.

    A group with members and non-members counts as two. An interval speaks of other texts, and not
    of other models. With fewer than `FEWEST_GROUPS` independent groups on a side, there are values
    and no intervals.

    Parameters
    ----------
    score, member : see `roc`
    group : [texts], the names of groups whose texts are not independent
    """
    value = auc(score, member)
    n_groups = np.array([effective_groups(group[side]) for side in (member, ~member)])
    of_rates = {
        f"{TPR}{rate:g}": _found_at(score[member], score[~member], n_groups, rate)
        for rate in false_positive_rates
    }
    if n_groups.min() < FEWEST_GROUPS:
        values = {AUC: value, **{name: one.mean for name, one in of_rates.items()}}
        return {name: NO_INTERVAL._replace(mean=one) for name, one in values.items()}
    return {AUC: Interval(value, *_auc_ends(score, member, group, n_groups)), **of_rates}


def _found_at(
    members: np.ndarray, others: np.ndarray, n_groups: np.ndarray, rate: float
) -> Interval:
    """The share of members above the score of a non-member, see `rank_at`, with its interval."""
    rank = rank_at(rate, len(others), n_groups[1])
    if not rank:
        return NO_INTERVAL
    return share_below_quantile(-members, -others, rank, *n_groups, level=rate)


def _check_sides(member: np.ndarray) -> None:
    if member.all() or not member.any():
        raise ValueError("a ROC curve needs members and non-members")


def _shares_below(scores: np.ndarray, limits: np.ndarray) -> np.ndarray:
    """float64[limits]: the share of scores that are below each limit; equal ones count a half."""
    rising = np.sort(scores)
    below, up_to = (np.searchsorted(rising, limits, side) for side in ("left", "right"))
    return (below + up_to) / (2 * len(scores))


def _auc_ends(
    score: np.ndarray, member: np.ndarray, group: np.ndarray, n_groups: np.ndarray
) -> tuple[float, float]:
    """The ends of the interval of an AUC.

    The share of non-members below a member has a mean and a variance over groups of members, and
    the share of members below a non-member one over groups of non-members. Their sum is the
    variance of the AUC. The interval is Student's on the scale of logits, which keeps it within 0
    and 1. Where no group differs from the others, as with perfect separation, there is no variance,
    and the ends are exact ones, see `unanimous`.

    Source: DeLong, DeLong and Clarke-Pearson, Biometrics 44 (1988); of groups: Obuchowski,
    Biometrics 53 (1997); degrees of freedom: Satterthwaite, Biometrics Bulletin 2 (1946); logits:
    Pepe, The statistical evaluation of medical tests (2003), section 5.2.
    """
    # Imported here, because figures import this module before any job, and scipy loads slowly.
    from scipy.special import expit, logit, stdtrit

    value = auc(score, member)
    variances = np.array(
        [
            _variance(_shares_below(score[~side], score[side]), group[side], n)
            for side, n in zip((member, ~member), n_groups, strict=True)
        ]
    )
    lower, upper = unanimous(value, n_groups.min())
    if not variances.any():
        return lower, upper
    degrees = variances.sum() ** 2 / (variances**2 / (n_groups - 1)).sum()
    deviation = np.sqrt(variances.sum()) / (value * (1 - value))
    reach = stdtrit(degrees, (1 + CONFIDENCE) / 2) * deviation
    ends = expit(logit(value) + np.array([-reach, reach]))
    return min(lower, float(ends[0])), max(upper, float(ends[1]))


def _variance(values: np.ndarray, group: np.ndarray, n_groups: float) -> float:
    """The variance of the mean of values, over groups; 0 if only rounding differs."""
    _, of_text, sizes = np.unique(group.astype(str), return_inverse=True, return_counts=True)
    apart = np.bincount(of_text, values) / sizes - values.mean()
    if is_constant(apart, magnitude=1.0):
        return 0.0
    return n_groups / (n_groups - 1) * ((sizes * apart) ** 2).sum() / len(values) ** 2


def unanimous(value: float, n: float) -> tuple[float, float]:
    """The exact 95 % interval of a mean of values from 0 to 1, if `n` of them are all alike.

    Another value has a probability of more than 1 − 0.025^(1/n) in at most 2.5 % of the cases. With
    perfect separation, pairs of a group of members and a group of others are such values, and there
    are as many independent ones as groups on the smaller side.
    """
    beyond = (1 - CONFIDENCE) / 2
    others = 1 - beyond ** (1 / n)
    return value * (1 - others), value * (1 - others) + others
