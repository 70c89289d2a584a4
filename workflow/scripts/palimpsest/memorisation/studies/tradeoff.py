"""The study `tradeoff`: memorisation of the training set against learning of the language."""

from __future__ import annotations

from palimpsest.configuration.settings import Settings
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.memorisation.joins import curves
from palimpsest.memorisation.kinds import LEARNING, TRAINING_SET, columns
from palimpsest.memorisation.study import Study, kind_of_study

pd = lazy_import("pandas")

KIND = kind_of_study(
    "tradeoff",
    "One row per model, seed, measure and epoch, with the losses beside it.",
    columns("""
        model language size seed variant measure evidence epoch coverage share_memorised mean_score
        share_memorised_distinct mean_score_distinct below_distinct margin_distinct
        share_memorised_unseen mean_score_unseen below_unseen margin_unseen below_covered
        below_unseen_covered share_memorised_perfect mean_score_perfect train_loss test_loss
        optimal_test_loss optimal_epoch still_learning band_first band_last never_starts start_p10
        start_p90 counterpart
    """),
)


@reads(training_set=TRAINING_SET, learning=LEARNING)
@makes(KIND)
def table(
    *, training_set: pd.DataFrame, learning: pd.DataFrame, counterpart: str | None = None
) -> pd.DataFrame:
    """Memorisation of the training set, its placebos and learning, for every epoch.

    Parameters
    ----------
    counterpart : the language's counterpart of high entropy, or None

    Source: section 4, RQ3, figures 3, 18 to 20 and 23 to 30.
    """
    found = curves(KIND, training_set, learning)
    return found.assign(counterpart=pd.array([counterpart] * len(found), dtype="string"))


class Tradeoff(Study):
    name = "tradeoff"
    order = 30
    title = "Learning and memorising"
    description = "Memorisation of the training set against learning of the language."
    text = (
        "Learning is how well a model predicts strings that it was not trained on: the test loss, "
        "which falls at first and rises when the model overfits. Its lowest point is called "
        "optimal learning. The question is how much of the training set is memorised by then, and "
        "whether training could have been stopped before any string was memorised."
    )

    def parameters(self, settings: Settings, language: str) -> dict:
        return {"counterpart": settings.counterpart(language)}


STUDY = Tradeoff()
