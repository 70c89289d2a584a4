"""The study `frequency`: the most and the least frequent training strings."""

from __future__ import annotations

from typing import ClassVar

from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.memorisation.joins import RUN, beside_learning, matched
from palimpsest.memorisation.kinds import LEARNING, SCORES, STARTS, columns
from palimpsest.memorisation.study import SIZE_KEY, Study, kind_of_study

pd = lazy_import("pandas")

SHARE_KEY = {
    "description": "Smallest share of the distinct strings at either end; strings with equally "
    "many copies are not parted.",
    "type": "number",
    "exclusiveMinimum": 0,
    "maximum": 0.5,
}
KIND = kind_of_study(
    "frequency",
    "One row per model, seed, measure, group and epoch.",
    columns(
        """
        model language size seed variant measure group epoch n_strings loss share_memorised_distinct
        mean_score_distinct optimal_epoch still_learning coverage below_matched margin_matched
        below_unseen_matched margin_unseen_matched
        """,
        group="str: top or bottom: most or least frequent distinct strings",
        n_strings="int: distinct strings in the group that the measure applies to",
        loss="float: mean loss of the whole group, nats per token",
        coverage="float: share of the group's distinct strings that have stand-ins which have "
        "stand-ins of their own; the following columns are about these strings, at optimal "
        "learning",
        below_matched="float?: share of these strings whose loss is below the threshold, even if "
        "it rises above the threshold later; NaN if the coverage is 0",
        margin_matched="float?: mean score without the rule for the start",
        below_unseen_matched="float?: `below_matched` of these strings' stand-ins: strings never "
        "trained on, of the same Bayes-optimal loss",
        margin_unseen_matched="float?: `margin_matched` of these stand-ins",
    ),
)


@reads(starts=STARTS, scores=SCORES, learning=LEARNING)
@makes(KIND)
def table(
    *, starts: pd.DataFrame, scores: pd.DataFrame, learning: pd.DataFrame, share: float = 0.1
) -> pd.DataFrame:
    """Memorisation of the most and the least frequent distinct training strings.

    Parameters
    ----------
    share : float in (0, 0.5], the smallest share of a run's distinct strings in each group

    Source: section 4, RQ4, figures 4, 21 and 22.
    """
    if not 0 < share <= 0.5:
        raise UserError(f"share {share}: the groups must be a share above 0, at most 0.5")
    groups = frequency_groups(starts, share)
    members = scores.merge(groups, on=[*RUN, "string_id"])
    # A string without stand-ins has no score by measures that need stand-ins.
    members["memorised"] = (members["score"] > 0).astype(float).where(members["score"].notna())
    curves = members.groupby([*RUN, "measure", "group", "epoch"], sort=False, as_index=False).agg(
        n_strings=("score", "count"),
        loss=("loss", "mean"),
        share_memorised_distinct=("memorised", "mean"),
        mean_score_distinct=("score", "mean"),
    )
    curves = curves.merge(beside_stand_ins(starts, groups), on=[*RUN, "measure", "group"])
    return beside_learning(curves, learning, ["optimal_epoch", "still_learning"])


def beside_stand_ins(starts: pd.DataFrame, groups: pd.DataFrame) -> pd.DataFrame:
    """At optimal learning, every group and its stand-ins: run, measure, group and the columns.

    Frequent strings have a lower loss even without memorisation, so each group is compared with
    unseen strings that are as probable as its own.
    """
    keys = [*RUN, "measure", "group"]
    members = starts.merge(groups, on=[*RUN, "string_id"])
    means = (
        matched(members)
        .groupby(keys)
        .agg(
            n_matched=("string_id", "size"),
            below_matched=("below_at_optimum", "mean"),
            margin_matched=("margin_at_optimum", "mean"),
            below_unseen_matched=("below_unseen", "mean"),
            margin_unseen_matched=("margin_unseen", "mean"),
        )
    )
    n_strings = members.groupby(keys).size().rename("n_group")
    found = n_strings.to_frame().join(means)
    coverage = found.pop("n_matched").fillna(0) / found.pop("n_group")
    return found.assign(coverage=coverage).reset_index()


def frequency_groups(starts: pd.DataFrame, share: float) -> pd.DataFrame:
    """The strings of the groups `top` and `bottom` of every run: run, string_id, group.

    Frequency is the number of copies in the training data. Strings with equally many copies are in
    one group or in none. Each group takes the strings with the most (or the fewest) copies until it
    has at least a share of the run's distinct strings; `top` leaves out the strings with the fewest
    copies, and `bottom` the strings of `top`. A run whose strings all have equally many copies has
    no groups.
    """
    strings = starts.drop_duplicates([*RUN, "string_id"])[[*RUN, "string_id", "count"]]
    parts = [_ends(run, share) for _, run in strings.groupby(RUN, sort=False)]
    return pd.concat(parts, ignore_index=True).drop(columns="count")


def _ends(run: pd.DataFrame, share: float) -> pd.DataFrame:
    with_copies = run["count"].value_counts().sort_index(ascending=False)
    # A number of copies belongs to an end if too few strings are beyond it.
    beyond = with_copies.cumsum() - with_copies
    beyond_from_below = len(run) - with_copies.cumsum()
    fewest = with_copies.index[-1]
    is_top = (beyond < share * len(run)) & (with_copies.index > fewest)
    is_bottom = (beyond_from_below < share * len(run)) & ~is_top & is_top.any()
    ends = {"top": is_top, "bottom": is_bottom}
    return pd.concat(
        [
            run[run["count"].isin(with_copies.index[chosen])].assign(group=group)
            for group, chosen in ends.items()
        ]
    )


class Frequency(Study):
    name = "frequency"
    order = 40
    title = "Frequent and infrequent strings"
    description = "The most and the least frequent strings of the training set."
    text = (
        "The distinct training strings are ranked by their copies, and the two ends of the "
        "ranking are compared. If frequency decided what is memorised, the most frequent "
        "strings would be far ahead under every measure."
    )
    keys: ClassVar = {"size": SIZE_KEY, "share": SHARE_KEY}

    def parameters(self, settings: Settings, language: str) -> dict:
        return {"share": self.block(settings)["share"]}


STUDY = Frequency()
