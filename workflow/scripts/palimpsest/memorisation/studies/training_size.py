"""The study `training_size`: more training data of the same language."""

from __future__ import annotations

from typing import ClassVar

from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.memorisation.joins import RUN, curves, matched
from palimpsest.memorisation.kinds import LEARNING, STARTS, TRAINING_SET, columns
from palimpsest.memorisation.study import Study, kind_of_study

pd = lazy_import("pandas")

SIZES_KEY = {
    "description": "Training sizes of the study, in strings.",
    "type": "array",
    "minItems": 1,
    "uniqueItems": True,
    "items": {"type": "integer", "minimum": 1, "maximum": 1000000},
}
KIND = kind_of_study(
    "training_size",
    "One row per model, seed, size and measure, at the epoch of optimal learning.",
    columns(
        """
        model language size seed variant measure optimal_epoch still_learning test_loss
        optimal_test_loss coverage share_memorised mean_score margin_distinct mean_score_unseen
        margin_unseen n_repeated mean_score_repeated margin_repeated margin_repeated_unseen
        threshold_shared
        """,
        n_repeated="int: distinct training strings that occur more than once",
        mean_score_repeated="float?: mean score of the distinct strings that occur more than once",
        margin_repeated="float?: mean score of these strings without the rule for the start; of "
        "those whose stand-ins have stand-ins of their own",
        margin_repeated_unseen="float?: `margin_repeated` of these strings' stand-ins, which were "
        "never trained on",
        threshold_shared="float?: mean threshold of the strings that are in the seed's training "
        "sets of all sizes, and have a threshold in each; for contextual: their mean optimal "
        "contextual loss",
    ),
)


@reads(starts=STARTS, training_set=TRAINING_SET, learning=LEARNING)
@makes(KIND)
def table(
    *, starts: pd.DataFrame, training_set: pd.DataFrame, learning: pd.DataFrame
) -> pd.DataFrame:
    """Memorisation at the epoch of optimal learning, for training sets of several sizes.

    Source: section 4, RQ5, figure 6.
    """
    found = curves(KIND, training_set, learning)
    optimum = found[found["epoch"] == found["optimal_epoch"]].drop(columns="epoch")
    repeated = starts[starts["count"] > 1].groupby([*RUN, "measure"], as_index=False)
    repeated = repeated.agg(
        n_repeated=("string_id", "size"), mean_score_repeated=("score_at_optimum", "mean")
    )
    compared = matched(starts[starts["count"] > 1]).groupby([*RUN, "measure"], as_index=False)
    compared = compared.agg(
        margin_repeated=("margin_at_optimum", "mean"),
        margin_repeated_unseen=("margin_unseen", "mean"),
    )
    sizes = optimum.merge(repeated, on=[*RUN, "measure"], how="left")
    sizes = sizes.merge(compared, on=[*RUN, "measure"], how="left")
    sizes = sizes.assign(n_repeated=sizes["n_repeated"].fillna(0).astype(int))
    return sizes.merge(shared_thresholds(starts), on=[*RUN, "measure"], how="left")


def shared_thresholds(starts: pd.DataFrame) -> pd.DataFrame:
    """The mean threshold over the strings that all sizes of a seed have: run, measure, threshold.

    A larger training set has other strings, too, and these are rarer on average. The thresholds of
    two sizes are comparable only on the same strings. A string whose threshold is unknown at any
    size is left out at all sizes.
    """
    same = ["model", "language", "seed", "variant"]
    n_sizes = starts.groupby(same)["size"].transform("nunique")
    known = starts.assign(n_sizes=n_sizes).dropna(subset="threshold_at_optimum")
    n_known = known.groupby([*same, "measure", "string_id"])["size"].transform("nunique")
    shared = known[n_known == known["n_sizes"]]
    means = shared.groupby([*RUN, "measure"], as_index=False)["threshold_at_optimum"].mean()
    return means.rename(columns={"threshold_at_optimum": "threshold_shared"})


class TrainingSize(Study):
    name = "training_size"
    order = 60
    title = "More training data"
    description = "More training data of the same language."
    text = (
        "A larger sample of the language improves learning, but repeats the frequent strings more "
        "often. Each point is a model at its own epoch of optimal learning."
    )
    keys: ClassVar = {"sizes": SIZES_KEY}


STUDY = TrainingSize()
