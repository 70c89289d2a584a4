"""Instantaneous, persistent and residual memorisation of all panels."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.profiles import kinds
from palimpsest.profiles.figures import palette
from palimpsest.profiles.figures.heat_maps import name_ticks
from palimpsest.profiles.paper import PAPER

FIGURE = Figure(
    __name__,
    order=120,
    chapter="profiles",
    title="Several panels: just after training, later, and at the end",
    caption=(
        "The effect of training just after it (top), by the time since then (middle), and at "
        "the last time (bottom), with simultaneous 95 % bands over units; larger models are "
        "darker. See whether darker curves are higher, and whether those at the bottom rise "
        "to the right."
    ),
    numbers="3, 4 and 5",
    paper=PAPER,
    tables=(kinds.PANELS_PROFILE, kinds.PANELS_PERSISTENCE),
    drawn_for="",
)


@style.styled
def panels_memorisation(table: pd.DataFrame, since: pd.DataFrame) -> plt.Figure:
    """From the tables `panels_profile` and `panels_persistence`, on the first outcome.

    Source: Causal Estimation of Memorisation Profiles, figures 3, 4 and 5.
    """
    cells = palette.of_panels(table)
    cells = palette.of_first_outcome(cells)
    figure = elements.figure_of(6.4, "Memorisation in panels")
    top, middle, bottom = figure.subplots(3, 1)
    tints = palette.tints(list(cells["panel"].unique()))
    cohorts = np.unique(cells["cohort"])
    for axes in (top, middle, bottom):
        axes.axhline(0, **elements.ZERO)
        axes.set_ylabel(palette.effect_on(cells))
    since = palette.of_first_outcome(since)
    for panel, colour in tints.items():
        own = cells[cells["panel"] == panel]
        own = own.assign(place=np.searchsorted(cohorts, own["cohort"]) + 0.5)
        after = own[own["time"] >= own["cohort"]]
        just_after = after.sort_values("time").drop_duplicates("cohort")
        palette.banded(top, just_after, "place", colour)
        palette.banded(bottom, own[own["time"] == own["time"].max()], "place", colour)
        palette.banded(middle, since[since["panel"] == panel], "since", colour)
    for axes in (top, bottom):
        name_ticks(axes.xaxis, cohorts, cells["kind_of_time"].iloc[0])
        axes.set_xlabel("cohort")
    top.set_title("just after training")
    middle.set(title="by time since training", xlabel="times since the treatment")
    elements.whole_ticks(middle.xaxis)
    middle.axvline(-0.5, **style.EPOCH_LINE, color=style.INK)
    bottom.set_title("at the last time")
    handles = [elements.line_handle(panel, colour) for panel, colour in tints.items()]
    treatment = elements.line_handle("treatment", **style.EPOCH_LINE)
    note = f"Bands: simultaneous, 95 %, over units. {palette.FILLED}"
    elements.legend(figure, [*handles, treatment], note)
    return figure
