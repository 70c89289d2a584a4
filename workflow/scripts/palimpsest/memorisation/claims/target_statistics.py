"""The statistics of target strings: when memorisation starts, and how large it becomes (RQ1, RQ2).

The tables have one row per target, or per target and epoch.

With few targets, rank associations have few values, and seeds often agree by chance. For example,
if three targets start in random order, one model has D = 1, 1/3, -1/3 or -1 with probabilities 1/6,
1/3, 1/3 and 1/6. So three seeds give the same value in 2 (1/6)³ + 2 (1/3)³ = 8.3 % of cases, but
all of them D = 1 in (1/6)³ = 0.5 %: the exact test counts all orders.
"""

import numpy as np
import pandas as pd

from palimpsest.claims import CONSTANT, DIFFERENCE, NOT_NEGATIVE, RETRAINING, SHARE
from palimpsest.memorisation.claims.claim_statistics import UNIT, curves, per_unit, statistic
from palimpsest.statistics import (
    MOST_ITEMS,
    off_diagonal_mean,
    order_p_value,
    pair_order,
    rank_association,
)


def at_the_end(exact: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One row per target, at the last epoch; `start` is inf if memorisation never starts."""
    last = curves(exact, measure)
    last = last[last["epoch"] == last["epoch"].max()]
    return last.assign(start=last["start"].fillna(np.inf))


EARLY_START = "rank association (Somers' D) of occurrence frequency with early start, "
BY_ACCURACY = {"recollection_accuracy": "recollection by accuracy"}


def evidence_of(measure: str) -> str:
    return CONSTANT if measure.startswith("recollection") else RETRAINING


def p_of_random_starts(exact: pd.DataFrame, measure: str) -> float:
    """Exact p-value that the targets start in random order, whatever their probability."""
    return _p_of_random_order(at_the_end(exact, measure).assign(start=lambda rows: -rows["start"]))


def p_of_random_thresholds(exact: pd.DataFrame) -> float:
    return _p_of_random_order(at_the_end(exact, "contextual"), "threshold")


def _p_of_random_order(rows: pd.DataFrame, column: str = "start") -> float:
    """The p-value of `order_p_value`; NaN for more targets than have countable orders.

    The models of a seed have the same targets, which are permuted for all of them together.
    """
    if rows["role"].nunique() > MOST_ITEMS:
        return np.nan
    seeds = [of_seed for _, of_seed in rows.groupby("seed")]
    probabilities = [of_seed.groupby("role")["log_prob"].first() for of_seed in seeds]
    values = [of_seed.pivot(index=UNIT, columns="role", values=column) for of_seed in seeds]
    return order_p_value(probabilities, [table.dropna().to_numpy() for table in values])


@statistic(
    "disagreement",
    lambda measure, remark="": EARLY_START + BY_ACCURACY.get(measure, measure) + remark,
    limits=DIFFERENCE,
    evidence=evidence_of,
    p_of_chance=p_of_random_starts,
)
def frequent_earlier(exact: pd.DataFrame, measure: str) -> pd.Series:
    """Rank association of occurrence frequency with early start; targets without start are last.

    Equally probable targets have no order, although one has a copy more than the other.
    """
    return per_unit(
        at_the_end(exact, measure), lambda unit: rank_association(unit["log_prob"], -unit["start"])
    )


@statistic(
    "disagreement",
    "rank association (Somers' D) of occurrence frequency with optimal contextual loss",
    limits=DIFFERENCE,
    evidence=RETRAINING,
    p_of_chance=p_of_random_thresholds,
)
def frequent_threshold(exact: pd.DataFrame) -> pd.Series:
    """Rank association of occurrence frequency with the optimal contextual loss."""
    return per_unit(
        at_the_end(exact, "contextual"),
        lambda unit: rank_association(unit["log_prob"], unit["threshold"]),
    )


@statistic(
    "disagreement",
    "share of pairs of targets ordered differently by {one} and {other} memorisation",
    limits=SHARE,
    evidence=(CONSTANT, RETRAINING),
)
def order_disagreement(exact: pd.DataFrame, one: str, other: str) -> pd.Series:
    """Share of pairs of targets whose order of start differs between two measures."""
    return per_unit(
        starts_by_measure(exact, one, other),
        lambda unit: off_diagonal_mean(
            pair_order(unit["start_one"]) != pair_order(unit["start_other"])
        ),
    )


@statistic(
    "disagreement",
    "share of targets whose start differs between {one} and {other} memorisation",
    limits=SHARE,
    evidence=(CONSTANT, RETRAINING),
)
def start_disagreement(exact: pd.DataFrame, one: str, other: str) -> pd.Series:
    """Share of targets whose start differs between two measures."""
    return per_unit(
        starts_by_measure(exact, one, other),
        lambda unit: (unit["start_one"] != unit["start_other"]).mean(),
    )


LATER = {
    "counterfactual": "share of targets whose counterfactual start is later; 0 by construction, "
    "because both starts follow one rule and the contextual threshold is never above the "
    "counterfactual threshold",
    "contextual": "share of targets whose contextual start is strictly later than the "
    "counterfactual one",
}


@statistic("disagreement", lambda one: LATER[one], limits=SHARE, evidence=RETRAINING)
def starts_later(exact: pd.DataFrame, one: str, other: str) -> pd.Series:
    """Share of targets whose start is later by the measure `one` than by the measure `other`."""
    return per_unit(
        starts_by_measure(exact, one, other),
        lambda unit: (unit["start_one"] > unit["start_other"]).mean(),
    )


def starts_by_measure(exact: pd.DataFrame, one: str, other: str) -> pd.DataFrame:
    """The targets at the last epoch under two measures; columns end in `_one` and `_other`."""
    return at_the_end(exact, one).merge(
        at_the_end(exact, other), on=[*UNIT, "role"], suffixes=("_one", "_other")
    )


@statistic(
    "disagreement",
    "share of (target, epoch) pairs whose loss is above the loss without the target",
    limits=SHARE,
    evidence=RETRAINING,
)
def loss_above_without(exact: pd.DataFrame) -> pd.Series:
    """Share of (target, epoch) pairs whose loss is above the loss without the target."""
    return at_the_end(exact, "counterfactual").groupby(UNIT)["assumption_broken"].mean()


@statistic(
    "disagreement",
    "relative distance of the optimal contextual loss of the middle target from the lowest test "
    "loss",
    limits=NOT_NEGATIVE,
    evidence=RETRAINING,
)
def middle_threshold_from_test_loss(exact: pd.DataFrame) -> pd.Series:
    """Relative distance of the mid-frequent target's optimal contextual loss from test loss."""
    return per_unit(curves(exact, "contextual"), _middle_threshold_from_test_loss)


def _middle_threshold_from_test_loss(unit: pd.DataFrame) -> float:
    targets = unit.drop_duplicates("role").sort_values("count", ascending=False, kind="stable")
    middle = targets["role"].iloc[len(targets) // 2]
    target = unit[unit["role"] == middle]
    return abs(target["threshold"].iloc[0] / target["test_loss"].min() - 1)


def both_scores(exact: pd.DataFrame) -> pd.DataFrame:
    scored = exact[exact["evidence"] == "retraining"]
    scores = scored.set_index([*UNIT, "role", "epoch", "measure"])["score"].unstack("measure")
    return scores.reindex(columns=["counterfactual", "contextual"]).reset_index()


@statistic(
    "disagreement",
    "largest excess of the contextual score over the counterfactual one, all targets and epochs; 0 "
    "by construction",
    limits=DIFFERENCE,
    evidence=RETRAINING,
)
def contextual_above_counterfactual(exact: pd.DataFrame) -> pd.Series:
    """Largest excess of the contextual over the counterfactual score, rounded to 12 decimals."""
    scores = both_scores(exact)
    excess = (scores["contextual"] - scores["counterfactual"]).round(12)
    return scores.assign(excess=excess).groupby(UNIT)["excess"].max()


@statistic(
    "disagreement",
    "share of counterfactually memorised (target, epoch) pairs whose contextual score is lower; "
    "nearly 1 by construction, because the two thresholds of a target are equal only at the epoch "
    "of its lowest loss without it",
    limits=SHARE,
    evidence=RETRAINING,
)
def counterfactual_overestimates(exact: pd.DataFrame) -> pd.Series:
    """Share of pairs (target, epoch) whose counterfactual score is above the contextual score.

    Only pairs that are memorised counterfactually count.
    """
    scores = both_scores(exact)
    scores = scores[scores["counterfactual"] > 0]
    above_contextual = scores["counterfactual"] > scores["contextual"]
    return scores.assign(above=above_contextual).groupby(UNIT)["above"].mean()


@statistic(
    "disagreement",
    "mean distance between the counterfactual and the contextual score at the last epoch",
    limits=SHARE,
    evidence=RETRAINING,
)
def scores_differ(exact: pd.DataFrame) -> pd.Series:
    """Mean distance of the counterfactual from the contextual score at the last epoch."""
    scores = both_scores(exact)
    scores = scores[scores["epoch"] == scores["epoch"].max()]
    distance = (scores["counterfactual"] - scores["contextual"]).abs()
    return scores.assign(distance=distance).groupby(UNIT)["distance"].mean()


@statistic(
    "disagreement",
    "rank association (Somers' D) of the epoch with the score from the start on, mean over the "
    "targets, {measure}",
    limits=DIFFERENCE,
    evidence=RETRAINING,
)
def score_increases(exact: pd.DataFrame, measure: str) -> pd.Series:
    """Rank association of the epoch with a target's score from its start on, mean over targets.

    Single steps would not do: where the score is saturated, half of its steps fall by chance.
    """
    scored = curves(exact, measure)
    started = scored[scored["epoch"] >= scored["start"]]
    by_target = per_unit(
        started, lambda rows: rank_association(rows["epoch"], rows["score"]), [*UNIT, "role"]
    )
    return by_target.groupby(UNIT).mean()


@statistic(
    "disagreement",
    "largest minus smallest score of the targets at the last epoch, {measure}",
    limits=SHARE,
    evidence=RETRAINING,
)
def score_range(exact: pd.DataFrame, measure: str) -> pd.Series:
    return per_unit(at_the_end(exact, measure), lambda unit: np.ptp(unit["score"]))
