"""The profiles of all panels, one beside the other."""

from __future__ import annotations

import math

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.profiles import kinds
from palimpsest.profiles.figures import palette
from palimpsest.profiles.figures.heat_maps import cell_handles, draw_cells, largest
from palimpsest.profiles.paper import PAPER

FIGURE = Figure(
    __name__,
    order=110,
    chapter="profiles",
    title="The profiles of several panels",
    caption=(
        "The effect of training on each cohort (row) at every time (column), by outcome and "
        "panel, smallest model first, coloured where the simultaneous 95 % band excludes 0. "
        "See how long the rows of larger models stay coloured, and whether outcomes differ."
    ),
    numbers="2 and 7",
    paper=PAPER,
    tables=(kinds.PANELS_PROFILE,),
    drawn_for="",
)
MOST_IN_A_ROW = 3


@style.styled
def panels_profiles(table: pd.DataFrame) -> plt.Figure:
    """A heat map for every panel and outcome, from a table `panels_profile`.

    The colours of an outcome mean the same in all panels.

    Source: Causal Estimation of Memorisation Profiles, figures 2 and 7.
    """
    cells = palette.of_panels(table)
    panels, outcomes = (list(cells[name].unique()) for name in ("panel", "outcome"))
    columns = min(len(panels), MOST_IN_A_ROW)
    rows = math.ceil(len(panels) / columns)
    figure = elements.figure_of(2.0 * rows * len(outcomes) + 1.1, "The profiles of panels")
    grid = figure.subplots(rows * len(outcomes), columns, squeeze=False)
    for place, outcome in enumerate(outcomes):
        of_outcome = cells[cells["outcome"] == outcome]
        reach = largest(of_outcome)
        free = list(grid[place * rows : (place + 1) * rows].flat)
        for panel, own in of_outcome.groupby("panel", sort=False):
            axes = free.pop(0)
            mesh = draw_cells(axes, own, reach, own["kind_of_time"].iloc[0])
            axes.set(title=panel, xlabel="time", ylabel="cohort")
            figure.colorbar(mesh, ax=axes, label=palette.effect_on(own), pad=0.02)
        for axes in free:
            axes.remove()
    elements.legend(figure, cell_handles())
    return figure
