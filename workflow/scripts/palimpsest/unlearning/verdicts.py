"""The numbers that a verdict on a method rests on: for one problem, and over several problems.

"Told from retraining" rests on two tests of the table `unlearning_tests`: by the forgetting quality
and by the joint attacker. Their p-values are corrected for each other (Holm), so "told" is wrong in
at most 5 % of the problems. Over several problems, p-values are corrected once more, so that at
most 5 % of the problems that are counted are counted wrongly (Benjamini and Hochberg). "Not told
from retraining" does not mean "equal".

What a method forgets is the share of the gap to retraining that it closes on the forget strings,
with its 95 % interval: over strings and models in one problem, and over the problems (Student)
otherwise. Damage to all strings is no forgetting, so the share has to exceed that of placebos too.
Retraining raises the loss of placebos as well, because it has fewer training strings. So a method
damages unseen strings if it raises their loss by more than retraining does.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from palimpsest.statistics import DECIMALS, Interval, holm, student
from palimpsest.unlearning.placebos import FORGET, PLACEBO
from palimpsest.unlearning.samples import PROBLEM_KEYS

ALPHA = 0.05
# A method harms if it keeps less than this share of the probability that retrained models give. The
# number is chosen, and the word is no test: it describes the mean.
KEEPS = 0.95


class Verdict(NamedTuple):
    """What can be said of a method.

    Parameters
    ----------
    n_problems, n_told : problems, and those in which the method is told from retraining
    closed : share of the gap that is closed, and its interval
    beyond : the same minus the share closed on placebos
    damage : share closed on placebos, minus that of retraining on placebos
    kept : the lowest share kept of the probability that retrained models give, by kind of strings
    """

    n_problems: int
    n_told: int
    closed: Interval
    beyond: Interval
    damage: Interval
    kept: Mapping[str, float]

    @property
    def lost(self) -> tuple[str, ...]:
        """Kinds of strings of which too little probability is kept; often none."""
        return tuple(name for name, share in self.kept.items() if share < KEEPS)


def verdict(
    tests: pd.DataFrame, gaps: pd.DataFrame, scores: pd.DataFrame, retrain: pd.DataFrame
) -> Verdict:
    """The verdict on one method, from its rows of one problem or of several.

    Parameters
    ----------
    tests, gaps, scores : rows of `unlearning_tests`, of `unlearning_gap_summary` and of
        `unlearning_scores` (one set-up) about one method, of the same problems
    retrain : rows of `unlearning_gap_summary` about retraining
    """
    told = told_from_retraining(tests)
    closed, beyond = share_closed(gaps, FORGET), share_beyond_placebos(gaps)
    damage = damage_to_placebos(gaps, retrain)
    return Verdict(len(told), int(told.sum()), closed, beyond, damage, kept(scores))


def told_from_retraining(tests: pd.DataFrame) -> np.ndarray:
    """Whether the method is told from retraining, bool[problems]."""
    from scipy.stats import false_discovery_control

    p_values = corrected_p_values(tests)
    return false_discovery_control(p_values) < ALPHA if len(p_values) else np.empty(0, dtype=bool)


def corrected_p_values(tests: pd.DataFrame) -> np.ndarray:
    """The smaller p-value of the two tests, corrected for their number (Holm); float[problems]."""
    pairs = tests[["p_value", "joint_p"]].dropna().to_numpy(dtype=float)
    return np.array([holm(pair).min() for pair in pairs])


def share_closed(gaps: pd.DataFrame, strings: str) -> Interval:
    """Share of the gap closed on one kind of strings, over the problems that have a clear gap.

    With one problem, the interval is that of the table, over strings and models. With several, it
    is Student's over the problems.
    """
    known = gaps[(gaps["strings"] == strings) & gaps["share"].notna()]
    if len(known) == 1:
        return Interval(*known[["share", "lower", "upper"]].iloc[0].astype(float))
    return student(known["share"].to_numpy(dtype=float), DECIMALS)


def share_beyond_placebos(gaps: pd.DataFrame) -> Interval:
    """By how much the share closed on forget strings exceeds that on placebos, problem by problem.

    For the interval see `share_closed`.
    """
    known = gaps[gaps["share"].notna()]
    forget, placebo = (
        known[known["strings"] == name].set_index(PROBLEM_KEYS)["share"]
        for name in (FORGET, PLACEBO)
    )
    if len(forget) == 1:
        return difference(share_closed(gaps, FORGET), share_closed(gaps, PLACEBO))
    return student((forget - placebo.reindex(forget.index)).to_numpy(), DECIMALS)


def damage_to_placebos(gaps: pd.DataFrame, retrain: pd.DataFrame) -> Interval:
    """By how much the share closed on placebos exceeds that of retraining, problem by problem.

    For the interval see `share_closed`. Where retraining has no share on placebos in any problem,
    0 takes its place.
    """
    if np.isnan(share_closed(retrain, PLACEBO).mean):
        return share_closed(gaps, PLACEBO)
    own, ideal = (
        known[(known["strings"] == PLACEBO) & known["share"].notna()].set_index(PROBLEM_KEYS)
        for known in (gaps, retrain)
    )
    common = own.index.intersection(ideal.index)
    if len(common) == 1:
        sides = (side.loc[common].reset_index() for side in (own, ideal))
        return difference(*(share_closed(side, PLACEBO) for side in sides))
    more = own.loc[common, "share"] - ideal.loc[common, "share"]
    return student(more.to_numpy(dtype=float), DECIMALS)


def difference(one: Interval, other: Interval) -> Interval:
    """A difference with an interval from the intervals of both sides, as if independent.

    Source: Zou and Donner, Construction of confidence limits about effect measures, Statistics in
    Medicine 27 (2008).
    """
    mean = one.mean - other.mean
    below = np.hypot(one.mean - one.lower, other.upper - other.mean)
    above = np.hypot(one.upper - one.mean, other.mean - other.lower)
    return Interval(mean, mean - below, mean + above)


def kept(scores: pd.DataFrame) -> dict[str, float]:
    """Share kept of the probability that retrained models give, mean over problems."""
    return {
        name: (scores[f"{key}_probability"] / scores[f"{key}_probability_retrained"]).mean()
        for name, key in (("retained", "retain"), ("test", "test"))
    }
