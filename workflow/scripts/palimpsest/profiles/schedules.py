"""Streams in two recipes with other learning rates, side by side.

In one recipe, the learning rate changes with the position in the stream. Two recipes give one
macro-batch two rates at the same position.

Source: Causal Estimation of Memorisation Profiles, section 7, which sees that memorisation just
after training goes with the learning rate.
"""

from __future__ import annotations

import pandas as pd

from palimpsest.making import makes, reads
from palimpsest.profiles import kinds, summaries
from palimpsest.statistics import rank_association

KEYS = ["model", "language", "size", "seed", "cohort"]


@reads(profile=kinds.PROFILE, contrast=kinds.PROFILE)
@makes(kinds.PROFILE_SCHEDULES)
def schedules(profile: pd.DataFrame, contrast: pd.DataFrame) -> pd.DataFrame:
    """A table `profile_schedules`, from the tables `profile` of a model in two recipes."""
    one, other = (_of_recipe(table) for table in (profile, contrast))
    other = other.rename(
        columns={
            "learning_rate": "other_rate",
            "estimate": "other_estimate",
            "before": "other_before",
        }
    )
    return one.merge(other, on=KEYS, validate="one_to_one")[kinds.PROFILE_SCHEDULES.names]


def _of_recipe(profile: pd.DataFrame) -> pd.DataFrame:
    cells = summaries.estimates(profile)
    just_after = summaries.instantaneous(cells)[[*KEYS, "learning_rate", "estimate"]]
    before = cells.loc[cells["time"] == cells["cohort"] - 2, [*KEYS, "estimate"]]
    return just_after.merge(before.rename(columns={"estimate": "before"}), on=KEYS, how="left")


def association(table: pd.DataFrame, effect: str) -> pd.DataFrame:
    """By seed and model: the rank association of the differences of rate and effect over cohorts.

    Somers' D of the difference in `effect` given that in the learning rate, in [-1, 1]. `effect` is
    `estimate` or `before`.
    """
    changes = pd.DataFrame(
        {
            "seed": table["seed"],
            "model": table["model"],
            "rate": table["learning_rate"] - table["other_rate"],
            "effect": table[effect] - table[f"other_{effect}"],
        }
    ).dropna()
    found = changes.groupby(["seed", "model"])[["rate", "effect"]].apply(
        lambda rows: rank_association(rows["rate"], rows["effect"])
    )
    return found.unstack().dropna(how="all")
