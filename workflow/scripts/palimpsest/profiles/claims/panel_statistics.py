"""The statistics that test the claims on several panels, such as those of published checkpoints.

All are on the outcome of each panel by difference-in-differences. There is one training of each
model, so that intervals are over strings: they say nothing about other trainings.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd
from scipy.special import stdtr

from palimpsest.claims import NO_THRESHOLD, Case, statistic
from palimpsest.estimates import Estimate, interval_note
from palimpsest.profiles import effects, kinds
from palimpsest.statistics import Interval

OVER = "strings"
CORRELATION = (-1.0, 1.0)
WORDS = {
    (kinds.ALL_PAIRS, effects.INSTANTANEOUS): "mean effect just after the treatment, larger minus "
    "smaller model, mean over all pairs of panels",
    (kinds.ALL_PAIRS, effects.PERSISTENT): "mean effect at later times, larger minus smaller "
    "model, mean over all pairs of panels",
    (kinds.ALL_PANELS, effects.INSTANTANEOUS_ORDER): "effect just after the treatment, later minus "
    "earlier half of the cohorts, mean over panels",
    (kinds.ALL_PANELS, effects.RESIDUAL_ORDER): "effect at the last time, later minus earlier half "
    "of the cohorts, mean over panels",
    (
        kinds.ALL_PANELS,
        effects.FADING_SHARE,
    ): "mean effect in the last third of a cohort's later times "
    "minus that in the second third, as a share of the effect just after the treatment, mean over "
    "panels",
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
    lambda compared, part: WORDS[compared, part],
    evidence=NO_THRESHOLD,
    cases=of_the_study,
)
def of_panels(table: pd.DataFrame, compared: str, part: str, bound: float = 0.0) -> Estimate:
    """A row of the table `panels_effects`. A remark holds the same of placebos."""
    return _row(table[(table["compared"] == compared) & (table["part"] == part)], bound)


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


def _row(rows: pd.DataFrame, bound: float | None = None) -> Estimate:
    by_role = dict(list(rows.groupby("string_role")))
    if kinds.TRAINED not in by_role:
        return Estimate()
    row = by_role[kinds.TRAINED].iloc[0]
    remarks = list(_placebo(by_role))
    ends = row["lower"], row["upper"]
    p_value = float("nan")
    if bound is not None and row["std_error"] > 0:
        distance = abs(row["estimate"] - bound) / row["std_error"]
        p_value = 2 * float(stdtr(row["degrees"], -distance))
    return Estimate(
        (row["estimate"],), row["estimate"], *ends, OVER, remarks=tuple(remarks), p_value=p_value
    )


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
            "before the treatment, where nothing is memorised",
            Interval(*before[["corrected", "lower", "upper"]]),
        ),
    ]
    if pd.isna(row["corrected"]):
        return Estimate(remarks=tuple(remarks))
    value = row["corrected"]
    return Estimate((value,), value, row["lower"], row["upper"], OVER, remarks=tuple(remarks))
