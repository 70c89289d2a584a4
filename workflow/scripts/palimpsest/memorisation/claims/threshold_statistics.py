"""The statistics of recollection by several thresholds, and by both rules for the start (RQ3)."""

import pandas as pd

from palimpsest.claims import CONSTANT, SHARE
from palimpsest.memorisation.claims.claim_statistics import UNIT, statistic


def shares_at_optimum(study: pd.DataFrame, column: str = "share_memorised") -> pd.DataFrame:
    """The share by unit and threshold, at the epoch of optimal learning: a column for each rule."""
    rows = study[study["epoch"] == study["optimal_epoch"]]
    return rows.pivot(index=[*UNIT, "loss_threshold"], columns="start_rule", values=column)


@statistic(
    "thresholds",
    "share of training strings memorised at optimal learning, largest minus "
    "smallest over the thresholds",
    limits=SHARE,
    evidence=CONSTANT,
    context={
        "of strings never trained on": lambda study: spread_over_thresholds(
            study, "share_memorised_unseen"
        )
    },
)
def range_over_thresholds(study: pd.DataFrame) -> pd.Series:
    return spread_over_thresholds(study, "share_memorised")


def spread_over_thresholds(study: pd.DataFrame, column: str) -> pd.Series:
    by_threshold = shares_at_optimum(study, column)["after_last_miss"].groupby(UNIT)
    return by_threshold.max() - by_threshold.min()


@statistic(
    "thresholds",
    "share of training strings memorised at optimal learning, by the first "
    "crossing minus after the last miss, at the threshold where they differ "
    "most",
    limits=SHARE,
    evidence=CONSTANT,
)
def rules_differ(study: pd.DataFrame) -> pd.Series:
    """Never negative: a string below the threshold for good has crossed it before."""
    shares = shares_at_optimum(study)
    return (shares["first_crossing"] - shares["after_last_miss"]).groupby(UNIT).max()
