"""Parts of a memorisation profile, and statistics of them that claims, figures and report share.

Source: Causal Estimation of Memorisation Profiles, section 3: memorisation is instantaneous just
after the treatment, persistent later, and residual at the end of training.
"""

import numpy as np
import pandas as pd

from palimpsest.profiles import kinds
from palimpsest.statistics import is_constant


def estimates(
    profile: pd.DataFrame, strings: str = kinds.TRAINED, outcome: str = kinds.LOG_LIKELIHOOD
) -> pd.DataFrame:
    return profile[
        (profile["estimator"] == kinds.DIFFERENCE_IN_DIFFERENCES)
        & (profile["string_role"] == strings)
        & (profile["outcome"] == outcome)
    ]


def instantaneous(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells just after the treatment."""
    return cells[cells["time"] == cells["cohort"]]


def persistent(cells: pd.DataFrame) -> pd.DataFrame:
    """All later cells."""
    return cells[cells["time"] > cells["cohort"]]


def residual(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells at the end of training."""
    return cells[cells["time"] == cells["time"].max()]


def after(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells in which the strings have been trained on."""
    return cells[cells["time"] >= cells["cohort"]]


def before(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells before the treatment, without the base period."""
    return cells[(cells["time"] < cells["cohort"]) & cells["std_error"].notna()]


def with_side(cells: pd.DataFrame) -> pd.DataFrame:
    """The cells without the base period; the column `cells` says on which side of the treatment.

    In the base period, the estimate is 0 by definition.
    """
    tested = cells.dropna(subset=["std_error"])
    return tested.assign(
        cells=np.where(tested["time"] < tested["cohort"], kinds.BEFORE, kinds.AFTER)
    )


def by_size(cells: pd.DataFrame) -> list[str]:
    models = cells.drop_duplicates("model").sort_values("parameters", kind="stable")
    return models["model"].tolist()


def largest_minus_smallest(cells: pd.DataFrame) -> pd.Series:
    """By seed: the mean estimate of the largest model minus that of the smallest.

    Empty if there is only one size.
    """
    models = by_size(cells)
    sizes = cells.groupby("model")["parameters"].first()
    if len(models) < 2 or sizes[models[0]] == sizes[models[-1]]:
        return pd.Series(dtype=float)
    means = cells.groupby(["seed", "model"])["estimate"].mean().unstack()
    return (means[models[-1]] - means[models[0]]).dropna()


def late_minus_early(cells: pd.DataFrame) -> pd.DataFrame:
    """By seed and model: the mean estimate of the later half of the cohorts minus that of the rest.

    With an odd number of cohorts, the one in the middle is left out.
    """
    cohorts = np.sort(cells["cohort"].unique())
    half = len(cohorts) // 2
    means = [
        cells[cells["cohort"].isin(part)].groupby(["seed", "model"])["estimate"].mean().unstack()
        for part in (cohorts[:half], cohorts[len(cohorts) - half :])
    ]
    return means[1] - means[0]


def minus_placebo(notions: pd.DataFrame, notion: str) -> pd.DataFrame:
    rows = notions[notions["notion"] == notion]
    return rows.assign(minus_placebo=rows["estimate"] - rows["placebo"])


def correlation_with_truth(rows: pd.DataFrame) -> pd.Series:
    """By seed and model: Pearson's correlation over macro-batches of a notion and the truth.

    `rows` come from `minus_placebo`. NaN if a notion is the same for all macro-batches.
    """
    return rows.groupby(["seed", "model"])[["minus_placebo", "specific"]].apply(
        lambda own: np.nan if is_constant(own).any() else own["minus_placebo"].corr(own["specific"])
    )


def mean_after(profile: pd.DataFrame, strings: str) -> pd.DataFrame:
    """By seed and model: the mean estimate of some strings after their treatment."""
    found = after(estimates(profile, strings))
    return found.groupby(["seed", "model"])["estimate"].mean().unstack()
