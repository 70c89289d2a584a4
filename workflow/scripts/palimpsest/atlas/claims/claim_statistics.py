"""The statistics of the atlas's claims: agreement of cheap measures with exact retraining."""

import pandas as pd

from palimpsest.atlas.kinds import HALVES, UNSEEN
from palimpsest.claims import (
    DIFFERENCE,
    NO_THRESHOLD,
    RETRAINING,
    SHARE,
    Case,
    each_language,
    statistic,
)
from palimpsest.estimates import Estimate, over_seeds

UNIT = ["seed", "model", "size"]
TWICE = (-2.0, 2.0)  # a difference of two correlations
UP_TO_1 = (-float("inf"), 1.0)  # R²


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
    "linear datamodelling score of {measure} on training strings minus that on unseen strings",
    limits=TWICE,
    evidence=RETRAINING,
)
def score_beyond_unseen(frontier: pd.DataFrame, measure: str) -> Estimate:
    halves, unseen = (values(frontier, measure, of, "value") for of in (HALVES, UNSEEN))
    return of_run(halves - unseen)


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


def as_new(foretelling: pd.DataFrame, new: str) -> list[Case]:
    """One case for every language with runs of which exactly this is new."""
    return each_language(foretelling[foretelling["new"] == new])


def foretold_runs(foretelling: pd.DataFrame, outcome: str, new: str) -> pd.DataFrame:
    """The rows of runs of which exactly this is new, by `UNIT`; `left_out` marks runs that were not
    foretold before their training.
    """
    rows = foretelling[(foretelling["outcome"] == outcome) & (foretelling["new"] == new)]
    return rows.assign(left_out=~rows["foretold_before"].astype(bool)).set_index(UNIT)


def of_foretold(rows: pd.DataFrame, values: pd.Series, *remarks: str) -> Estimate:
    """The mean over the runs that were foretold before their training."""
    n_left_out = int(rows["left_out"].sum())
    if n_left_out:
        remarks = (f"{n_left_out} runs are left out: not foretold before they began", *remarks)
    return of_run(values[~rows["left_out"]].astype(float), remarks=remarks)


@statistic(
    "foretelling",
    "R² of each string's {outcome}, foretold before training, in runs whose {new} is new",
    limits=UP_TO_1,
    evidence=NO_THRESHOLD,
    cases=as_new,
)
def foretold(foretelling: pd.DataFrame, outcome: str, new: str) -> Estimate:
    """The remark has predictions of other strings, and those that know less."""
    rows = foretold_runs(foretelling, outcome, new)
    told = rows[~rows["left_out"]]
    placebo, rarity, mean = (
        told[name].mean() for name in ("placebo", "r_squared_by_rarity", "r_squared_by_mean")
    )
    known = f"by exact probability alone {rarity:.2f}, by the mean of earlier runs {mean:.2f}"
    remarks = (f"placebo: {placebo:.2f}", known) if len(told) else ()
    return of_foretold(rows, rows["r_squared"], *remarks)


@statistic(
    "foretelling",
    "R² of each string's {outcome}, foretold before training, minus that by exact probability "
    "alone, in runs whose {new} is new",
    evidence=NO_THRESHOLD,
    cases=as_new,
)
def beyond_rarity(foretelling: pd.DataFrame, outcome: str, new: str) -> Estimate:
    rows = foretold_runs(foretelling, outcome, new)
    return of_foretold(rows, rows["r_squared"] - rows["r_squared_by_rarity"])


@statistic(
    "foretelling",
    "share of the strings whose {outcome} is in the interval foretold before training, in runs "
    "whose {new} is new",
    limits=SHARE,
    evidence=NO_THRESHOLD,
    cases=as_new,
)
def inside_foretold(foretelling: pd.DataFrame, outcome: str, new: str) -> Estimate:
    rows = foretold_runs(foretelling, outcome, new)
    width = rows.loc[~rows["left_out"], "width"].median()
    return of_foretold(rows, rows["coverage"], *([f"width {width:.2g}"] if pd.notna(width) else ()))
