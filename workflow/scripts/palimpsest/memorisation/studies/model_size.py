"""The study `model_size`: models of one family and several sizes."""

from __future__ import annotations

from typing import ClassVar

from palimpsest.configuration.settings import Settings
from palimpsest.errors import UserError, nearest
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.memorisation.joins import curves
from palimpsest.memorisation.kinds import LEARNING, TRAINING_SET, columns
from palimpsest.memorisation.study import Study, kind_of_study
from palimpsest.models import resolve
from palimpsest.paths import MANIFEST

pd = lazy_import("pandas")
read_manifests = lazy_import("palimpsest.manifests")

KIND = kind_of_study(
    "model_size",
    "One row per model, seed, measure and epoch.",
    columns(
        """
        model language size seed variant family parameters measure epoch test_loss optimal_test_loss
        coverage share_memorised mean_score margin_distinct mean_score_unseen margin_unseen
        optimal_epoch still_learning
        """,
        family="str: family of the model",
    ),
)


@reads(training_set=TRAINING_SET, learning=LEARNING)
@makes(KIND)
def table(
    *,
    training_set: pd.DataFrame,
    learning: pd.DataFrame,
    manifests: list[str],
    families: dict[str, str],
) -> pd.DataFrame:
    """Memorisation and learning across the models of a family.

    Parameters
    ----------
    manifests : manifests of the runs; they have the models' numbers of parameters
    families : the family of every model

    Source: appendix F, figures 31 to 38.
    """
    return beside_sizes(training_set, learning, read_manifests.models(manifests, families))


def beside_sizes(
    training_set: pd.DataFrame, learning: pd.DataFrame, models: pd.DataFrame
) -> pd.DataFrame:
    unknown = set(training_set["model"]) - set(models["model"])
    if unknown:
        name = min(unknown)
        known = sorted(models["model"])
        raise UserError(
            f"model {name!r} has no family and size; known: {', '.join(known)}"
            f"{nearest(name, known)}"
        )
    sizes = models[["model", "family", "parameters"]]
    return curves(KIND, training_set, learning).merge(sizes, on="model")


class ModelSize(Study):
    name = "model_size"
    order = 70
    title = "Larger models"
    description = "Models of one family and several sizes."
    text = (
        "Each curve is the path of a model through training: from the right, where it knows "
        "nothing, to the left as it learns, and upwards as it memorises."
    )
    files: ClassVar = {"manifests": MANIFEST}

    def parameters(self, settings: Settings, language: str) -> dict:
        models = self.models(settings)
        families = {name: resolve(name, settings.models)[0].family for name in models}
        return {"families": families}


STUDY = ModelSize()
