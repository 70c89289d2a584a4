"""Do adapters memorise less than the training of all weights?"""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.memorisation.studies.adapters import KIND

FIGURE = Figure(
    __name__,
    order=110,
    chapter="adapters",
    title="Adapters against all weights, at equal test loss",
    caption=(
        "Left, the loss on training strings (filled) and on test strings (open), at the "
        "lowest test loss that both models of a pair reached; right, the shares then "
        "recollected. At equal test loss, a lower training loss is more memorisation."
    ),
    tables=(KIND,),
)
OPEN = {"markerfacecolor": "white"}
APART = 0.12  # of filled and open marks, in places
OF_REFERENCE = "reference_"


@style.styled
def adapters(study: pd.DataFrame) -> plt.Figure:
    """Losses and recollection at equal test loss, with a place per model."""
    (reference,) = study["reference"].unique()
    models = [reference, *study["model"].unique()]
    study = study.assign(reference_equal_test_loss=study["equal_test_loss"])
    figure = elements.figure_of(3.4, "Adapters at equal test loss", study)
    inner = elements.panels_in(figure)
    left, right = inner.subplots(1, 2)
    draw_places(left, study, models, "train_loss_distinct", "equal_test_loss", style.INK)
    left.set_ylabel("loss (nats per token)")
    left.set_title("loss", weight="bold")
    colour = style.MEASURES["recollection"].colour
    draw_places(right, study, models, "below_distinct", "below_unseen", colour)
    right.set_ylabel("share of the strings\nthat are recollected")
    right.set_title("recollection", weight="bold")
    elements.share_axis(right)
    inner.supxlabel("model, when it predicts the test strings as well as the other")
    handles = [
        elements.line_handle("training strings", linestyle="none", marker="o"),
        elements.line_handle("strings never trained on", linestyle="none", marker="o", **OPEN),
    ]
    elements.legend(figure, handles, elements.error_note(study))
    return figure


def draw_places(
    axes: plt.Axes, study: pd.DataFrame, models: list[str], trained: str, unseen: str, colour
) -> None:
    reference, first, *_ = models
    for place, model in enumerate(models):
        # The reference is in the rows of every other model; those of one are enough.
        rows = study[study["model"] == (first if model == reference else model)]
        prefix = OF_REFERENCE if model == reference else ""
        for column, side, look in ((trained, -1, {}), (unseen, 1, OPEN)):
            mean, reach = elements.whiskers(rows[prefix + column])
            axes.errorbar(
                place + side * APART, mean, yerr=reach, marker="o", color=colour, elinewidth=0.8,
                **look,
            )  # fmt: skip
    axes.set_xticks(range(len(models)), models, rotation=20, ha="right")
    axes.set_xlim(-0.5, len(models) - 0.5)
