"""The study `deduplication`: training sets with and without repeated strings."""

from __future__ import annotations

from palimpsest.configuration.settings import Settings
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.memorisation.joins import curves
from palimpsest.memorisation.kinds import LEARNING, TRAINING_SET, columns
from palimpsest.memorisation.study import Study, kind_of_study

pd = lazy_import("pandas")

KIND = kind_of_study(
    "deduplication",
    "One row per model, seed, variant, measure and epoch.",
    columns("""
        model language size seed variant measure epoch coverage share_memorised_distinct
        mean_score_distinct below_distinct margin_distinct below_unseen margin_unseen train_loss
        train_loss_distinct n_train test_loss test_loss_distinct test_spread
        optimal_test_loss_distinct optimal_test_spread optimal_epoch still_learning start_p10
        start_p90
    """),
)


@reads(training_set=TRAINING_SET, learning=LEARNING)
@makes(KIND)
def table(*, training_set: pd.DataFrame, learning: pd.DataFrame) -> pd.DataFrame:
    """Memorisation and learning with and without repeated strings: a curve per variant.

    Source: section 4, RQ4, figure 5; appendix G, RQ8 and RQ9, figures 39 and 40.
    """
    return curves(KIND, training_set, learning)


class Deduplication(Study):
    name = "deduplication"
    order = 50
    title = "Removing repetitions"
    description = (
        "One copy of each string, compared with all its copies and with the high-entropy "
        "counterpart."
    )
    text = (
        "Deduplicated data (dedup) are compared with the data as sampled (base) and, if the "
        "study has one, with strings of a high-entropy counterpart of the language (dedup-"
        "matched), into which deduplication would have to turn the data."
    )

    def variants(self, settings: Settings, language: str) -> list[str]:
        matched = ["dedup-matched"] if settings.counterpart(language) else []
        return ["base", "dedup", *matched]


STUDY = Deduplication()
