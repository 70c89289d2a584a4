"""The study `frequency`: the most and the least frequent training strings."""

from __future__ import annotations

from typing import ClassVar

from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError
from palimpsest.figures.figure import Figure
from palimpsest.lazy_import import lazy_import
from palimpsest.memorisation.joins import RUN, beside_learning
from palimpsest.memorisation.kinds import (
    FRACTION_DISTINCT,
    LEARNING,
    OPTIMAL_EPOCH,
    SCORES,
    STARTS,
    WEIGHTED_DISTINCT,
)
from palimpsest.memorisation.paper import PAPER
from palimpsest.memorisation.study import SIZE_KEY, Study
from palimpsest.paths import STUDY_TABLE, fill
from palimpsest.tables.columns import EPOCH, GROUP_SEED, MEASURE
from palimpsest.tables.kinds import Column, Kind

pd = lazy_import("pandas")

SHARE_KEY = {
    "description": "Share of the distinct strings at either end.",
    "type": "number",
    "exclusiveMinimum": 0,
    "maximum": 0.5,
}
KIND = Kind(
    "frequency",
    "One row per model, seed, measure, group and epoch.",
    fill(STUDY_TABLE, study="frequency"),
    (
        *GROUP_SEED,
        MEASURE,
        Column("group", str, "top or bottom: most or least frequent distinct strings"),
        EPOCH,
        Column("n_strings", int, "distinct strings in the group that the measure applies to"),
        Column("loss", float, "mean loss of the group, nats per token"),
        FRACTION_DISTINCT,
        WEIGHTED_DISTINCT,
        OPTIMAL_EPOCH,
    ),
)


def table(
    *,
    starts: pd.DataFrame,
    scores: pd.DataFrame,
    learning: pd.DataFrame,
    share: float = 0.1,
) -> pd.DataFrame:
    """Memorisation of the most and the least frequent distinct training strings.

    Parameters
    ----------
    share : float in (0, 0.5], the share of a run's distinct training strings in each group
        The number of strings is rounded, and at least 1.

    Source: section 4, RQ4, figures 4, 21 and 22.
    """
    if not 0 < share <= 0.5:
        raise UserError(f"share {share}: the groups must be a share above 0, at most 0.5")
    groups = frequency_groups(starts, share)
    # A string without stand-ins has no score by measures that need stand-ins.
    members = scores.dropna(subset="score").merge(groups, on=[*RUN, "string_id"])
    members["memorised"] = members["score"] > 0
    curves = members.groupby([*RUN, "measure", "group", "epoch"], sort=False, as_index=False).agg(
        n_strings=("string_id", "size"),
        loss=("loss", "mean"),
        fraction_distinct=("memorised", "mean"),
        weighted_distinct=("score", "mean"),
    )
    return beside_learning(curves, learning, ["optimal_epoch"])


def frequency_groups(starts: pd.DataFrame, share: float) -> pd.DataFrame:
    """The strings of the groups `top` and `bottom` of every run: run, string_id, group.

    Frequency is the probability under the language; strings of equal probability are ranked by
    how often they occur in the training data, then by name.
    """
    strings = starts.drop_duplicates([*RUN, "string_id"])
    strings = strings[[*RUN, "string_id", "count", "log_prob"]].copy()
    # Rounded, because equal probabilities differ in their last digits.
    strings["log_prob"] = strings["log_prob"].round(9)
    strings = strings.sort_values(
        ["log_prob", "count", "string_id"], ascending=[False, False, True]
    )
    runs = strings.groupby(RUN, sort=False)["string_id"]
    chosen = (share * runs.transform("size")).round().clip(lower=1)
    rank = runs.cumcount()
    rank_from_below = runs.cumcount(ascending=False)
    top, bottom = strings[rank < chosen], strings[rank_from_below < chosen]
    groups = pd.concat([top.assign(group="top"), bottom.assign(group="bottom")])
    return groups[[*RUN, "string_id", "group"]]


class Frequency(Study):
    """The most and the least frequent training strings."""

    name = "frequency"
    order = 40
    title = "Frequent and infrequent strings"
    description = "The most and the least frequent strings of the training set."
    text = (
        "The distinct training strings are ranked by their probability under the language, and the "
        "two ends of the ranking are compared. If frequency decided what is memorised, the most "
        "frequent strings would be far ahead of the least frequent ones under every measure."
    )
    kind = KIND
    reads = (
        STARTS,
        SCORES,
        LEARNING,
    )
    figures = (
        Figure(
            name="frequency",
            chapter="frequency",
            title="Frequent and infrequent strings",
            caption=(
                "Training loss and memorisation of the most frequent (solid) and the least "
                "frequent (dashed) distinct training strings under each measure. See in which "
                "panels the solid and the dashed curves separate before the dotted lines: under "
                "these measures, frequency decides what is memorised."
            ),
            numbers="4, 21 and 22",
            paper=PAPER,
            tables=(KIND,),
            draw="palimpsest.memorisation.figures.frequency:frequency",
        ),
    )

    keys: ClassVar = {"size": SIZE_KEY, "share": SHARE_KEY}

    def parameters(self, settings: Settings, language: str) -> dict:
        """The share of the strings in each group."""
        return {"share": self.block(settings)["share"]}


STUDY = Frequency()
