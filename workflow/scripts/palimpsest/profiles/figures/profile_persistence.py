"""The effect by time since the treatment."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.profiles import kinds
from palimpsest.profiles.figures import palette
from palimpsest.profiles.kinds import LOG_LIKELIHOOD, PLACEBO, TRAINED
from palimpsest.profiles.paper import PAPER

FIGURE = Figure(
    __name__,
    order=40,
    chapter="profiles",
    title="How long memorisation lasts",
    caption=(
        "The effect of training by time since the treatment, averaged over macro-batches, "
        "with simultaneous 95 % bands (left), and for strings never trained on (right). See "
        "where a band no longer excludes 0, and whether the curves fall to a plateau."
    ),
    numbers="4",
    paper=PAPER,
    tables=(kinds.POOLED_PERSISTENCE,),
)


@style.styled
def profile_persistence(table: pd.DataFrame) -> plt.Figure:
    """The effect by time since treatment, of trained strings and of placebos.

    Source: Causal Estimation of Memorisation Profiles, figure 4.
    """
    figure = palette.figure_of(3.1, "How long memorisation lasts", table)
    panels = figure.subplots(1, 2, sharey=True)
    titles = {TRAINED: "strings that are trained on", PLACEBO: "strings that are never trained on"}
    rows = table[table["outcome"] == LOG_LIKELIHOOD]
    for axes, (strings, title) in zip(panels, titles.items(), strict=True):
        axes.axvline(-0.5, **style.EPOCH_LINE, color=style.INK)
        palette.draw_models(axes, rows[rows["string_role"] == strings], "since")
        axes.set_title(title)
        axes.set_xlabel("macro-batches since the treatment")
        elements.whole_ticks(axes.xaxis)
    panels[0].set_ylabel(palette.EFFECT)
    treatment = elements.line_handle("treatment", **style.EPOCH_LINE)
    elements.legend(figure, [*palette.handles(table), treatment], palette.markers_note(table))
    return figure
