"""Paths of the effect on the strings of each macro-batch over time."""

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
    order=20,
    chapter="profiles",
    title="Memorisation paths",
    caption=(
        "The effect of training on each macro-batch over time, from just before its treatment "
        "(later ones darker), mean over all seeds. See how far a line jumps when its strings "
        "are trained on, and how fast it falls back."
    ),
    numbers="1",
    paper=PAPER,
    tables=(kinds.POOLED_PROFILE,),
)


@style.styled
def profile_paths(table: pd.DataFrame) -> plt.Figure:
    """The effect on the strings of each macro-batch over time, from just before their treatment.

    Source: Causal Estimation of Memorisation Profiles, figure 1 (bottom).
    """
    cells = summaries.estimates(table)
    cells = cells[cells["time"] >= cells["cohort"] - 1]
    cohorts = sorted(cells["cohort"].unique())
    tints = palette.tints(cohorts)
    models = summaries.by_size(cells)
    figure = palette.figure_of(3.1, "Memorisation paths", table)
    row = figure.subplots(1, len(models), sharey=True, squeeze=False)[0]
    for axes, model in zip(row, models, strict=True):
        axes.axhline(0, **elements.ZERO)
        for cohort, own in cells[cells["model"] == model].groupby("cohort"):
            own = own.sort_values("time")
            axes.plot(own["time"], own["estimate"], color=tints[cohort])
            some = own[own["significant"]]
            axes.plot(some["time"], some["estimate"], "o", markersize=3.5, color=tints[cohort])
        axes.set_title(model)
        axes.set_xlabel("checkpoint (macro-batches)")
        elements.whole_ticks(axes.xaxis)
    row[0].set_ylabel(palette.EFFECT)
    ends = [
        elements.line_handle(f"macro-batch {cohort}", tints[cohort])
        for cohort in dict.fromkeys((cohorts[0], cohorts[-1]))
    ]
    note = (
        f"{palette.runs_note(table).partition(';')[0]}. Markers: the simultaneous band excludes 0."
    )
    elements.legend(figure, ends, note)
    return figure
