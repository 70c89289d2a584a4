"""The effect just after the treatment."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.lazy_import import lazy_import
from palimpsest.profiles import kinds
from palimpsest.profiles.figures import palette
from palimpsest.profiles.paper import PAPER

summaries = lazy_import("palimpsest.profiles.summaries")

FIGURE = Figure(
    __name__,
    order=30,
    chapter="profiles",
    title="Just after training on a string",
    caption=(
        "The effect of training on each macro-batch just after it, with simultaneous 95 % "
        "bands (top), and the learning rate (bottom). See whether the curves follow the "
        "learning rate, and whether larger models are higher."
    ),
    numbers="3",
    paper=PAPER,
    tables=(kinds.POOLED_PROFILE,),
)


@style.styled
def profile_instantaneous(table: pd.DataFrame) -> plt.Figure:
    """The effect just after the treatment, above the learning rate of the steps.

    Source: Causal Estimation of Memorisation Profiles, figure 3.
    """
    cells = summaries.instantaneous(summaries.estimates(table))
    figure = palette.figure_of(3.6, "Just after training on a string", table)
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    palette.draw_models(top, cells, "cohort")
    top.set_ylabel(palette.EFFECT)
    for model, colour in palette.of_models(table).items():
        rates = cells[cells["model"] == model].sort_values("cohort")
        bottom.plot(rates["cohort"], rates["learning_rate"], color=colour, drawstyle="steps-mid")
    bottom.set(xlabel=palette.MACRO_BATCH, ylabel="learning rate", ylim=(0, None))
    elements.whole_ticks(bottom.xaxis)
    elements.legend(figure, palette.handles(table), palette.markers_note(table))
    return figure
