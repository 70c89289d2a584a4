"""The profile of a user's panel."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.profiles import kinds
from palimpsest.profiles.figures import palette
from palimpsest.profiles.figures.heat_maps import cell_handles, draw_cells, largest
from palimpsest.profiles.paper import PAPER
from palimpsest.tables.user_values import NUMBER

FIGURE = Figure(
    __name__,
    order=100,
    chapter="profiles",
    title="The effect of training over time",
    caption=(
        "The effect of training on each cohort (row) at every time (column), coloured where "
        "the simultaneous 95 % band excludes 0 (left), and its average by time since the "
        "treatment (right). See how long it lasts, and that nothing left of the staircase is "
        "coloured."
    ),
    numbers="1 and 4",
    paper=PAPER,
    tables=(kinds.PANEL_PROFILE, kinds.PANEL_PERSISTENCE),
    drawn_for="panel",
)


@style.styled
def panel_profile(table: pd.DataFrame, since: pd.DataFrame) -> plt.Figure:
    """From the tables `panel_profile` and `panel_persistence` of a user's panel.

    Source: Causal Estimation of Memorisation Profiles, figures 1 and 4.
    """
    cells = palette.of_first_outcome(palette.of_panels(table))
    since = palette.of_first_outcome(since)
    figure = elements.figure_of(3.1, f"The profile of the panel {table['panel'].iloc[0]}")
    left, right = figure.subplots(1, 2)
    kind, is_loss = table[["kind_of_time", "is_loss"]].iloc[0]
    effect = "effect on minus the loss" if is_loss else "effect (units of the outcome)"
    mesh = draw_cells(left, cells, largest(cells), kind)
    left.set(title="difference-in-differences", xlabel="time", ylabel="cohort")
    left.tick_params(axis="x", rotation=0 if kind == NUMBER else 30)
    figure.colorbar(mesh, ax=left, label=effect, pad=0.02)
    right.axhline(0, **elements.ZERO)
    palette.banded(right, since, "since", palette.MODELS)
    right.set(title="mean over cohorts", xlabel="times since the treatment", ylabel=effect)
    note = f"Bands: simultaneous, 95 %, over units. {palette.FILLED}"
    elements.legend(figure, cell_handles(), note)
    return figure
