"""The numbers that a verdict on a method rests on: for one problem, and over several problems.

"Told from retraining" rests on two tests of the table `unlearning_tests`: by the forgetting quality
and by the joint attacker. Their p-values are corrected for each other (Holm), so "told" is wrong in
at most 5 % of the problems. Over several problems, p-values are corrected once more, so that on
average at most 5 % of the problems that are counted are counted wrongly (Benjamini and Hochberg).
"Not told from retraining" does not mean "equal".

What a method forgets is the share of the gap to retraining that it closes on the forget strings,
with its 95 % interval: over strings and models in one problem, and over the problems (Student)
otherwise. Damage to all strings is no forgetting, so the share has to exceed that of two controls
too: placebos, which no model was trained on, and retained strings, which were learned by heart like
the forget strings and are to be kept. Retraining raises the loss of placebos as well: it has fewer
training strings and takes fewer steps. So a method damages a control if it raises its loss by more
than retraining does.
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import pandas as pd

from palimpsest.statistics import DECIMALS, Interval, holm, student
from palimpsest.unlearning.evaluate.placebos import CONTROLS, FORGET, PLACEBO, RETAINED
from palimpsest.unlearning.evaluate.samples import PROBLEM_KEYS

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
    beyond : the same minus the larger of the shares closed on placebos and on retained strings
    damage : share closed on placebos, minus that of retraining on placebos
    damage_to_retained : the same for retained strings
    kept : the lowest share kept of the probability that retrained models give, by kind of strings
    """

    n_problems: int
    n_told: int
    closed: Interval
    beyond: Interval
    damage: Interval
    damage_to_retained: Interval
    kept: Mapping[str, float]

    @property
    def lost(self) -> tuple[str, ...]:
        """Kinds of strings that keep too little probability; often none."""
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
    closed, beyond = share_closed(gaps, FORGET), share_beyond_controls(gaps)
    damages = (damage(gaps, retrain, control) for control in (PLACEBO, RETAINED))
    return Verdict(len(told), int(told.sum()), closed, beyond, *damages, kept(scores))


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
    known = gaps[(gaps["string_role"] == strings) & gaps["share"].notna()]
    if len(known) == 1:
        return Interval(*known[["share", "lower", "upper"]].iloc[0].astype(float))
    return student(known["share"].to_numpy(dtype=float), DECIMALS)


def share_beyond_controls(gaps: pd.DataFrame) -> Interval:
    """By how much the share closed on forget strings exceeds the larger of those on controls.

    The larger share is taken problem by problem. For the interval see `share_closed`.
    """
    known = gaps[gaps["share"].notna()]
    forget, *others = (
        known[known["string_role"] == name].set_index(PROBLEM_KEYS)["share"]
        for name in (FORGET, *CONTROLS)
    )
    if len(forget) == 1:
        controls = [share_closed(gaps, name) for name in CONTROLS]
        measured = [share for share in controls if not np.isnan(share.mean)] or controls[:1]
        return difference(share_closed(gaps, FORGET), max(measured, key=lambda share: share.mean))
    larger = pd.concat(others, axis=1).max(axis=1).reindex(forget.index)
    return student((forget - larger).to_numpy(dtype=float), DECIMALS)


def damage(gaps: pd.DataFrame, retrain: pd.DataFrame, control: str) -> Interval:
    """By how much the share closed on a control exceeds that of retraining, problem by problem.

    For the interval see `share_closed`. Where retraining has no share on the control in any
    problem, 0 takes its place.
    """
    if np.isnan(share_closed(retrain, control).mean):
        return share_closed(gaps, control)
    own, ideal = (
        known[(known["string_role"] == control) & known["share"].notna()].set_index(PROBLEM_KEYS)
        for known in (gaps, retrain)
    )
    common = own.index.intersection(ideal.index)
    if len(common) == 1:
        sides = (side.loc[common].reset_index() for side in (own, ideal))
        return difference(*(share_closed(side, control) for side in sides))
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
    return {
        name: (scores[f"{key}_probability"] / scores[f"{key}_probability_retrained"]).mean()
        for name, key in (("retained", "retain"), ("test", "test"))
    }
