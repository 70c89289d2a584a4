"""The effect at the end of training."""

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
    order=50,
    chapter="profiles",
    title="What is left at the end of training",
    caption=(
        "The effect of training on each macro-batch at the end, with simultaneous 95 % bands; "
        "filled: significant. Where curves rise to the right, strings that were seen late are "
        "memorised more."
    ),
    numbers="5",
    paper=PAPER,
    tables=(kinds.POOLED_PROFILE,),
)


@style.styled
def profile_residual(table: pd.DataFrame) -> plt.Figure:
    """The effect at the end of training, from tables `pooled_profile` of one language.

    Source: Causal Estimation of Memorisation Profiles, figure 5.
    """
    cells = summaries.residual(summaries.estimates(table))
    figure = palette.figure_of(2.9, "What is left at the end", table)
    axes = figure.subplots()
    palette.draw_models(axes, cells, "cohort")
    axes.set(xlabel=palette.MACRO_BATCH, ylabel=palette.EFFECT)
    elements.whole_ticks(axes.xaxis)
    elements.legend(figure, palette.handles(table), palette.markers_note(table))
    return figure
