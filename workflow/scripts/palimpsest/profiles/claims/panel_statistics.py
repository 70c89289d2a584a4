"""The statistics that test the claims on several panels, such as those of published checkpoints.

All are on the outcome of each panel by difference-in-differences. There is one training of each
model, so that intervals say nothing about other trainings. They are over strings, and speak of the
macro-batches of these panels. What early and late macro-batches have in common is known only as
well as macro-batches are alike: the intervals of the order are also over macro-batches.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
from scipy.special import stdtr, stdtrit

from palimpsest.claims import NO_THRESHOLD, Case, statistic
from palimpsest.estimates import Estimate, interval_note
from palimpsest.profiles import effects, kinds
from palimpsest.statistics import CONFIDENCE, Interval

OVER = "strings"
OVER_COHORTS = "strings and macro-batches"
CORRELATION = (-1.0, 1.0)
LARGER = "larger minus smaller model, in the pair of panels in which it is smallest"
LATER = "later minus earlier half of the cohorts, mean over panels"
WORDS = {
    effects.INSTANTANEOUS: f"mean effect just after the treatment, {LARGER}",
    effects.PERSISTENT: f"mean effect at later times, {LARGER}",
    effects.INSTANTANEOUS_ORDER: f"effect just after the treatment, {LATER}",
    effects.RESIDUAL_ORDER: f"effect at the last time, {LATER}",
}


def of_the_study(table: pd.DataFrame) -> list[Case]:
    """All panels are one case."""
    n_panels = table["panel"].nunique()
    return [Case(name, n_panels, (own,)) for name, own in table.groupby("language")]


def of_the_smallest(table: pd.DataFrame) -> list[Case]:
    """The panel of the smallest model, which is the first."""
    first = table["panel"].dropna().iloc[:1]
    return [Case(name, 1, (table[table["panel"] == name],)) for name in first]


def of_pairs(table: pd.DataFrame) -> list[Case]:
    """Every pair of panels is a case of its own."""
    groups = table.groupby(["panel", "other"], sort=False)
    return [Case(f"{one} and {other}", 2, (own,)) for (one, other), own in groups]


@statistic(
    kinds.PANELS_EFFECTS.name,
    lambda part: WORDS[part],
    evidence=NO_THRESHOLD,
    cases=of_the_study,
)
def order(table: pd.DataFrame, part: str) -> Estimate:
    """The mean over panels of a part of two halves. A remark holds the same of placebos."""
    rows = table[(table["compared"] == kinds.ALL_PANELS) & (table["part"] == part)]
    return _row(rows, bound=0)._replace(over=OVER_COHORTS)


@statistic(
    kinds.PANELS_EFFECTS.name,
    lambda part: WORDS[part],
    evidence=NO_THRESHOLD,
    cases=of_the_study,
)
def in_every_pair(table: pd.DataFrame, part: str) -> Estimate:
    """The difference of two panels, in the pair in which it is smallest.

    The remarks name the pair, and hold the same of placebos.
    """
    rows = table[(table["compared"] == kinds.PAIR) & (table["part"] == part)]
    n = _panels_in(table)
    names = rows["panel"] + " and " + rows["other"]
    return _smallest(rows.assign(name=names), n * (n - 1) // 2)


@statistic(
    kinds.PANELS_EFFECTS.name,
    "as shares of the effect just after the treatment, within each cohort: {tolerated} minus the "
    "size of the change from the second to the last third of its later times, or the fall from "
    "just after the treatment to the last third minus {tolerated}; the smallest over panels",
    evidence=NO_THRESHOLD,
    cases=of_the_study,
)
def falls_to_a_plateau(table: pd.DataFrame, tolerated: float) -> Estimate:
    """Whether effects fall by more than a tolerated share, and change by less of it at the end.

    Both in every panel. The remark names the panel in which least is left of a condition.
    """
    alone = table[(table["compared"] == kinds.ONE_PANEL) & (table["string_role"] == kinds.TRAINED)]
    conditions = (
        (effects.FADING_SHARE, -1, tolerated),
        (effects.FADING_SHARE, 1, tolerated),
        (effects.FALLEN_SHARE, -1, -tolerated),
    )
    parts = []
    for part, sign, added in conditions:
        rows = alone[alone["part"] == part]
        left = sign * rows["estimate"] + added
        parts.append(rows.assign(estimate=left, name=rows["panel"]))
    return _smallest(pd.concat(parts), len(conditions) * _panels_in(table))


@statistic(
    kinds.PANELS_EFFECTS.name,
    "mean effect at later times of the smallest model, as a share of its effect just after the "
    "treatment",
    evidence=NO_THRESHOLD,
    cases=of_the_smallest,
)
def of_the_smallest_model(table: pd.DataFrame) -> Estimate:
    """The share of memorisation that persists in the smallest model."""
    is_one = table["compared"] == kinds.ONE_PANEL
    return _row(table[is_one & (table["part"] == effects.PERSISTENT_SHARE)])


def _panels_in(table: pd.DataFrame) -> int:
    return table["panel"].nunique()


def _smallest(rows: pd.DataFrame, n: int) -> Estimate:
    """The smallest of n estimates, which have errors over units; no estimate if one is missing.

    By the rules of `estimates.lowest`: all are above a number if each is, and one is below it if
    its interval is, corrected for the number of estimates. `rows` also has a column `name`.

    Source: Berger, Multiparameter hypothesis testing and acceptance sampling (1982).
    """
    trained = rows[rows["string_role"] == kinds.TRAINED]
    if len(trained) < n or trained.empty:
        return Estimate()
    values, errors, degrees = (
        trained[column].to_numpy() for column in ("estimate", "std_error", "degrees")
    )
    beyond = (1 - CONFIDENCE) / 2
    lower = (values + stdtrit(degrees, beyond) * errors).min()
    upper = (values - stdtrit(degrees, beyond / n) * errors).min()
    with np.errstate(divide="ignore", invalid="ignore"):
        p_values = np.nan_to_num(2 * stdtr(degrees, -np.abs(values / errors)), nan=1.0)
    is_below = values < 0
    p_value = min(1.0, n * p_values[is_below].min()) if is_below.any() else p_values.max()
    row = trained.iloc[int(values.argmin())]
    of_row = rows[rows["name"] == row["name"]]
    remarks = (
        f"smallest in {row['name']}",
        *_placebo(dict(list(of_row.groupby("string_role")))),
    )
    value = row["estimate"]
    return Estimate((value,), value, lower, upper, OVER, remarks=remarks, p_value=float(p_value))


def _row(rows: pd.DataFrame, bound: float | None = None) -> Estimate:
    by_role = dict(list(rows.groupby("string_role")))
    if kinds.TRAINED not in by_role:
        return Estimate(remarks=tuple(_placebo(by_role)))
    row = by_role[kinds.TRAINED].iloc[0]
    p_value = float("nan")
    if bound is not None and row["std_error"] > 0:
        distance = abs(row["estimate"] - bound) / row["std_error"]
        p_value = 2 * float(stdtr(row["degrees"], -distance))
    value, remarks = row["estimate"], tuple(_placebo(by_role))
    ends = row["lower"], row["upper"]
    return Estimate((value,), value, *ends, OVER, remarks=remarks, p_value=p_value)


def _placebo(by_role: dict[str, pd.DataFrame]) -> Iterator[str]:
    """The same of units never treated. A share of their effect, which is 0, says nothing."""
    if kinds.PLACEBO in by_role:
        row = by_role[kinds.PLACEBO].iloc[0]
        if not row["part"].endswith("_share"):
            yield interval_note("placebos", Interval(*row[["estimate", "lower", "upper"]]))


@statistic(
    kinds.PANELS_CORRELATION.name,
    "correlation of the profiles of two panels after the treatment, beyond their errors",
    limits=CORRELATION,
    evidence=NO_THRESHOLD,
    cases=of_pairs,
)
def predicts_in_pair(table: pd.DataFrame) -> Estimate:
    """The corrected correlation. Remarks hold the plain one, and what is found where nothing is."""
    by_side = table.set_index("cells")
    row, before = by_side.loc[kinds.AFTER], by_side.loc[kinds.BEFORE]
    remarks = [
        f"as estimated, with errors: {row['correlation']:.2f}",
        interval_note(
            "without what all cohorts have in common at a time since their treatment",
            Interval(*row[["within_lags", "within_lower", "within_upper"]]),
        ),
        interval_note(
            "before the treatment, where nothing is memorised",
            Interval(*before[["corrected", "lower", "upper"]]),
        ),
    ]
    if pd.isna(row["corrected"]):
        return Estimate(remarks=tuple(remarks))
    value = row["corrected"]
    return Estimate((value,), value, row["lower"], row["upper"], OVER, remarks=tuple(remarks))
