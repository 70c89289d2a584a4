"""The statistics of the atlas's claims: agreement of cheap measures with exact retraining."""

import pandas as pd

from palimpsest.claims import DIFFERENCE, RETRAINING, SHARE, statistic
from palimpsest.estimates import Estimate, over_seeds

UNIT = ["seed", "model", "size"]
TWICE = (-2.0, 2.0)  # a difference of two correlations


def values(frontier: pd.DataFrame, measure: str, question: str, column: str) -> pd.Series:
    """A column of the rank correlations of one measure, float[seeds, models, sizes]."""
    wanted = {"measure": measure, "question": question, "statistic": "rank correlation"}
    rows = frontier[(frontier[list(wanted)] == pd.Series(wanted)).all(axis=1)]
    return rows.set_index(UNIT)[column].astype(float)


def of_run(found: pd.Series, **settings) -> Estimate:
    """The mean over sizes of each model and seed, then over models and seeds."""
    return over_seeds(found.groupby(level=["seed", "model"]).mean(), units="runs", **settings)


@statistic(
    "frontier",
    "rank correlation (Spearman) of {measure} with exact retraining, {question}",
    limits=DIFFERENCE,
    evidence=RETRAINING,
)
def agreement(frontier: pd.DataFrame, measure: str, question: str) -> Estimate:
    """The placebo is in the remark: the same where there is nothing to find."""
    placebo = values(frontier, measure, question, "placebo").mean()
    remark = f"placebo: {placebo:.2f}" if pd.notna(placebo) else ""
    return of_run(values(frontier, measure, question, "value"), remarks=(remark,))


@statistic(
    "frontier",
    "rank correlation (Spearman) of {measure} with exact retraining beyond the placebo, {question}",
    limits=TWICE,
    evidence=RETRAINING,
)
def beyond_placebo(frontier: pd.DataFrame, measure: str, question: str) -> Estimate:
    value, placebo = (
        values(frontier, measure, question, column) for column in ("value", "placebo")
    )
    return of_run(value - placebo)


@statistic(
    "frontier",
    "rank correlation (Spearman) of {measure} with exact retraining minus that of {other}, "
    "{question}",
    limits=TWICE,
    evidence=RETRAINING,
)
def difference(frontier: pd.DataFrame, measure: str, other: str, question: str) -> Estimate:
    one, two = (values(frontier, name, question, "value") for name in (measure, other))
    return of_run(one - two)


@statistic(
    "frontier",
    "linear datamodelling score of {measure} minus its rank correlation over single removals",
    limits=TWICE,
    evidence=RETRAINING,
)
def score_beyond_singles(frontier: pd.DataFrame, measure: str) -> Estimate:
    halves, singles = (
        values(frontier, measure, question, "value") for question in ("whose, of halves", "whose")
    )
    return of_run(halves - singles)


@statistic(
    "conformal",
    "share of the strings whose interval has the exact self-influence, if the calibration has no "
    "common {held_out}",
    limits=SHARE,
    evidence=RETRAINING,
)
def coverage(conformal: pd.DataFrame, held_out: str) -> Estimate:
    """The remarks have the widths, and what is refused because it is unlike the calibration."""
    rows = conformal[conformal["held_out"] == held_out]
    width, single = rows["width"].median(), rows["single_width"].median()
    remarks = (
        f"width {width:.2g}, by the best single measure {single:.2g} nats per token",
        f"{rows['refused'].mean():.0%} refused",
        f"{rows['told_apart'].mean():.0%} of the runs told apart",
    )
    found = rows.set_index(UNIT)["coverage"].astype(float)
    return of_run(found, remarks=remarks if len(rows) else ())
