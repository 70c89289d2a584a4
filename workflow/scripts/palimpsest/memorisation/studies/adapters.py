"""The study `adapters`: adapters against the training of all weights, at equal test loss."""

from __future__ import annotations

from collections.abc import Iterable

from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.lazy_import import lazy_import
from palimpsest.making import makes, reads
from palimpsest.memorisation.joins import CURVE, beside_learning
from palimpsest.memorisation.kinds import LEARNING, TRAINING_SET, columns
from palimpsest.memorisation.study import Study, kind_of_study
from palimpsest.models import resolve

np = lazy_import("numpy")
pd = lazy_import("pandas")

RUNS = ["language", "size", "seed", "variant"]
RECOLLECTION = "recollection"
# What is compared, interpolated between two epochs
COMPARED = ("epoch", "train_loss_distinct", "below_distinct", "below_unseen")
SHARES = ["below_distinct", "below_unseen"]
OF_REFERENCE = "reference_"


KIND = kind_of_study(
    "adapters",
    "One row per seed and model but the first, which is the reference.",
    columns(
        """
        model language size seed variant reference equal_test_loss epoch train_loss_distinct
        below_distinct below_unseen reference_epoch reference_train_loss_distinct
        reference_below_distinct reference_below_unseen still_learning
        """,
        reference="str: the model that is compared with: the study's first",
        equal_test_loss="float: the lowest test loss that both models reached, nats per token",
        epoch="float?: the time at which the model reached the equal test loss, in epochs, "
        "interpolated",
        train_loss_distinct="float?: loss of the model on the distinct training strings then, nats"
        " per token",
        below_distinct="float?: share of the distinct training strings that the model recollects "
        "then",
        below_unseen="float?: share of the unseen strings that the model recollects then",
        reference_epoch="float?: `epoch` of the reference",
        reference_train_loss_distinct="float?: `train_loss_distinct` of the reference then",
        reference_below_distinct="float?: `below_distinct` of the reference then",
        reference_below_unseen="float?: `below_unseen` of the reference then",
    ),
)


@reads(training_set=TRAINING_SET, learning=LEARNING)
@makes(KIND)
def table(*, training_set: pd.DataFrame, learning: pd.DataFrame, reference: str) -> pd.DataFrame:
    """Memorisation of each model and of the reference when they predict unseen strings equally.

    Training with adapters learns more slowly, and may not come as far. So the models are compared
    neither at the same epoch nor each at its own optimum, but at the lowest test loss that both
    reached. They have the same training strings, so at equal test loss the one with the lower
    training loss holds more of these strings. No threshold is needed: the contextual threshold of a
    run depends on how far the run learned, so it would not be the same for both.

    Parameters
    ----------
    reference : the model that the others are compared with
    """
    shares = training_set.loc[training_set["measure"] == RECOLLECTION, [*CURVE, *SHARES]]
    losses = ["test_loss", "train_loss_distinct", "optimal_epoch", "still_learning"]
    curves = beside_learning(shares, learning, losses)
    learned = curves[curves["epoch"] <= curves["optimal_epoch"]].sort_values("epoch")
    rows = []
    for key, models in learned.groupby(RUNS, sort=False):
        of_reference = models[models["model"] == reference]
        for model, other in models.groupby("model", sort=False):
            if model == reference or of_reference.empty:
                continue
            equal = max(other["test_loss"].min(), of_reference["test_loss"].min())
            at_reference = when_learned(of_reference, equal)
            rows.append(
                {
                    **dict(zip(RUNS, key, strict=True)),
                    "model": model,
                    "reference": reference,
                    "equal_test_loss": equal,
                    **when_learned(other, equal),
                    **{f"{OF_REFERENCE}{name}": value for name, value in at_reference.items()},
                    "still_learning": bool(
                        other["still_learning"].any() or of_reference["still_learning"].any()
                    ),
                }
            )
    return pd.DataFrame(rows, columns=KIND.names)


def when_learned(run: pd.DataFrame, loss: float) -> dict[str, float]:
    """The columns `COMPARED` of a run when its test loss first falls to a value.

    `run` holds one run's rows in the order of the epochs. Between two epochs, everything is taken
    to change linearly. NaN if the run never falls so low.
    """
    test = run["test_loss"].to_numpy()
    reached = np.flatnonzero(test <= loss)
    if not len(reached):
        return dict.fromkeys(COMPARED, np.nan)
    after = reached[0]
    values = run[list(COMPARED)].to_numpy(dtype=float)
    if after == 0:
        return dict(zip(COMPARED, values[0], strict=True))
    share = (test[after - 1] - loss) / (test[after - 1] - test[after])
    found = values[after - 1] + share * (values[after] - values[after - 1])
    return dict(zip(COMPARED, found, strict=True))


class Adapters(Study):
    name = "adapters"
    order = 75
    title = "Adapters"
    description = (
        "Models with adapters (the key `adapter` of a recipe), compared at equal test loss with "
        "the first model, all of whose weights are trained."
    )
    text = (
        "Only adapters (LoRA) are trained; the model’s own weights stay. Adapters learn more "
        "slowly, so models are compared at equal test loss. The answer is about one rank and "
        "one learning rate of the adapters."
    )

    def parameters(self, settings: Settings, language: str) -> dict:
        return {"reference": self.models(settings)[0]}

    def mistakes(self, settings: Settings) -> Iterable[Mistake]:
        """Also: a first model with an adapter, or another model without one."""
        found = list(super().mistakes(settings))
        yield from found
        if found:
            return
        first, *others = self.models(settings)
        has = {
            name: "adapter" in settings.training(name, self.recipe(settings))
            for name in (first, *others)
        }
        same = {resolve(name, settings.models)[0].id for name in has}
        if has[first] or not others or not all(has[name] for name in others) or len(same) > 1:
            yield Mistake(
                "memorisation/studies/adapters/models",
                "must name first a full model all of whose weights are trained, and then models "
                "with the same id in the table of models and with an adapter, set by "
                "training_by_model: {NAME: {adapter: lora}}",
            )


STUDY = Adapters()
