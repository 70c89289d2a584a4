"""Memorisation profiles of models."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.lazy_import import lazy_import
from palimpsest.profiles import kinds
from palimpsest.profiles.figures import palette
from palimpsest.profiles.figures.heat_maps import cell_handles, draw_cells, largest
from palimpsest.profiles.paper import PAPER

summaries = lazy_import("palimpsest.profiles.summaries")

FIGURE = Figure(
    __name__,
    order=10,
    chapter="profiles",
    title="Memorisation profiles",
    caption=(
        "The effect of training on each macro-batch (row) on the log-likelihood of its "
        "strings at every checkpoint (column), coloured where the simultaneous 95 % band "
        "excludes 0. See how far right of the staircase a row stays coloured, and that "
        "nothing to its left is."
    ),
    numbers="2",
    paper=PAPER,
    tables=(kinds.POOLED_PROFILE,),
)


@style.styled
def profile(table: pd.DataFrame) -> plt.Figure:
    """A heat map for each model, from tables `pooled_profile` of one language.

    Source: Causal Estimation of Memorisation Profiles, figure 2.
    """
    cells = summaries.estimates(table)
    models = summaries.by_size(cells)
    figure = palette.figure_of(3.1, "Memorisation profiles", table)
    row = figure.subplots(1, len(models), sharey=True, squeeze=False)[0]
    reach = largest(cells)
    for axes, model in zip(row, models, strict=True):
        mesh = draw_cells(axes, cells[cells["model"] == model], reach)
        axes.set_title(model)
        axes.set_xlabel("checkpoint (macro-batches)")
    row[0].set_ylabel("macro-batch of the strings")
    figure.colorbar(mesh, ax=row, label=palette.EFFECT, fraction=0.03, pad=0.01)
    elements.legend(figure, cell_handles(), palette.runs_note(table))
    return figure
