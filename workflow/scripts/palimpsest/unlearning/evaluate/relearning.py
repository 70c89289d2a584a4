"""How fast models learn the forget set again, where some models do not within the steps tried.

A model that does not reach the goal is censored: its time is at least the number of steps tried.
"""

from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest

from palimpsest.statistics import CONFIDENCE, DECIMALS, Interval, is_constant, student

RELABELLINGS = 9999
SEED = 0  # of the relabellings; the same for all methods and problems


class Relearned(NamedTuple):
    """The relearning of some models, float[models] each.

    `steps` are the optimiser steps until the goal, infinite if it was not reached within `limit`.
    """

    steps: np.ndarray
    limit: np.ndarray

    @property
    def reached(self) -> np.ndarray:
        """bool[models]: whether the goal was reached."""
        return np.isfinite(self.steps)

    @property
    def times(self) -> np.ndarray:
        """float[models]: steps until the goal, or until the model was censored."""
        return np.where(self.reached, self.steps, self.limit)


def tried(steps: np.ndarray, limit: np.ndarray) -> Relearned:
    """The models for which relearning was tried: those with a number of steps."""
    there = ~np.isnan(steps)
    return Relearned(steps[there], limit[there])


def restricted_mean(relearned: Relearned) -> Interval:
    """Mean over the models of min(steps, L), where L is the smallest number of steps tried.

    This is the area from 0 to L under the Kaplan-Meier curve of the models that have not relearned
    yet, because no model is censored before L. Unlike a mean over the models that relearn, this
    mean needs no guess for the others. The mean depends on L, so compare numbers of the same L
    only. The mean is at most L, and is L if no model relearns: then L is a lower bound.

    The interval is Student's over the models. It is null if no model relearns or if all take
    equally long, because this shows a limit or the length of a step, and not certainty.

    Raises `ValueError` if a number of steps is negative or above its limit.

    Source: Kaplan and Meier, Nonparametric estimation from incomplete observations (1958); Royston
    and Parmar, Restricted mean survival time (2013).
    """
    if not ((relearned.times >= 0) & (relearned.times <= relearned.limit)).all():
        raise ValueError("steps of relearning must be 0 or more, and at most the limit")
    if not len(relearned.steps):
        return Interval(np.nan, np.nan, np.nan)
    within = np.minimum(relearned.times, relearned.limit.min())
    if is_constant(within):
        return Interval(within[0], np.nan, np.nan)
    return student(within)


def share_not_reached(relearned: Relearned) -> Interval:
    """Share of the models that did not reach the goal, with Clopper and Pearson's interval.

    The interval is over models, of 95 %, and exact. All is NaN if no model was tried.
    """
    n = len(relearned.steps)
    if n == 0:
        return Interval(np.nan, np.nan, np.nan)
    found = binomtest(int((~relearned.reached).sum()), n)
    return Interval(found.statistic, *found.proportion_ci(CONFIDENCE, method="exact"))


def logrank_p_value(
    one: Relearned, other: Relearned, relabellings: int = RELABELLINGS, seed: int = SEED
) -> float:
    """P-value of the hypothesis that two kinds of models relearn equally fast.

    The statistic is the logrank test's: the number of models of one kind that relearned, minus the
    number expected if both kinds are equally fast. Its null distribution is that of random labels,
    which is exact for few models, unlike the chi-squared approximation.

    Returns
    -------
    float in (0, 1]; NaN if a kind has no model or if no model of either kind relearned.

    Source: Mantel (1966), Evaluation of survival data; Lehmann and Romano, Testing statistical
    hypotheses, section 15.2, for relabelling.
    """
    if not len(one.steps) or not len(other.steps):
        return np.nan
    pooled = Relearned(*(np.concatenate(pair) for pair in zip(one, other, strict=True)))
    if not pooled.reached.any():
        return np.nan
    excess = logrank_excess(pooled)
    is_one = np.arange(len(excess)) < len(one.steps)
    labels = np.random.default_rng(seed).permuted(np.tile(is_one, (relabellings, 1)), axis=1)
    observed = np.round(abs(excess @ is_one), DECIMALS)
    reached = int((np.round(np.abs(labels @ excess), DECIMALS) >= observed).sum())
    return (1 + reached) / (1 + relabellings)


def logrank_excess(pooled: Relearned) -> np.ndarray:
    """Each model's part of the logrank statistic, float[models]; the sum over all models is 0.

    The part is 1 if the model relearned, else 0, minus the number of times that a model at its risk
    is expected to relearn until its own time (the Nelson-Aalen estimate).
    """
    times, reached = pooled.times, pooled.reached
    moments = np.unique(times[reached])
    n_left = (times[:, None] >= moments).sum(axis=0)
    n_events = (times[reached][:, None] == moments).sum(axis=0)
    expected = (times[:, None] >= moments) @ (n_events / n_left)
    return reached - expected
