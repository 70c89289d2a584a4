"""Do adapters memorise less than the training of all weights?"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palimpsest.figures import curves, style

OPEN = {"markerfacecolor": "white"}
APART = 0.12  # of filled and open marks, in places


@style.styled
def adapters(study: pd.DataFrame) -> Figure:
    """Shares below a threshold at equal test loss: a panel per measure, a place per model.

    Parameters
    ----------
    study : table `adapters` of one language
    """
    measures = style.measures_in(study["measure"])
    (reference,) = study["reference"].unique()
    models = [reference, *study["model"].unique()]
    figure = curves.figure_of(3.2, f"Adapters at equal test loss: {curves.subject(study)}")
    inner = curves.panels_in(figure)
    panels = inner.subplots(1, len(measures), sharey=True, squeeze=False)[0]
    for axes, measure in zip(panels, measures, strict=True):
        rows = study[study["measure"] == measure]
        curves.name_panel(axes, measure)
        draw_places(axes, rows, models, style.MEASURES[measure].colour)
    curves.share_axis(panels[0])
    panels[0].set_ylabel("share of the strings\nbelow the threshold")
    inner.supxlabel("model, when it predicts unseen strings as well as the other", fontsize=8)
    handles = [
        curves.line_handle("training strings", linestyle="none", marker="o"),
        curves.line_handle("strings never trained on", linestyle="none", marker="o", **OPEN),
    ]
    curves.legend(figure, handles, curves.error_note(study))
    return figure


def draw_places(axes: Axes, rows: pd.DataFrame, models: list[str], colour) -> None:
    """Two marks per model: training strings, and strings never trained on."""
    reference, *_ = models
    for place, model in enumerate(models):
        # The reference stands in the rows of every other model; one of them is enough.
        of_model = rows[rows["model"] == (models[1] if model == reference else model)]
        prefix = "reference_" if model == reference else ""
        for column, side, look in (("below_distinct", -1, {}), ("below_unseen", 1, OPEN)):
            mean, reach = curves.whiskers(of_model[prefix + column])
            axes.errorbar(
                place + side * APART, mean, yerr=reach, marker="o", color=colour, elinewidth=0.8,
                **look,
            )  # fmt: skip
    axes.set_xticks(range(len(models)), models, rotation=20, ha="right")
    axes.set_xlim(-0.5, len(models) - 0.5)
