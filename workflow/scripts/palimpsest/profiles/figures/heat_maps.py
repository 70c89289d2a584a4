"""Heat maps of memorisation profiles."""

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.colors import TwoSlopeNorm
from matplotlib.figure import Figure

from palimpsest.figures import curves, style
from palimpsest.profiles.figures import looks
from palimpsest.profiles.kinds import DIFFERENCE_IN_DIFFERENCES
from palimpsest.profiles.summaries import by_size, estimates
from palimpsest.tables.user_values import NUMBER, written_moment

MAP = "PuOr_r"
NOT_SIGNIFICANT = "0.93"


@style.styled
def profile(table: pd.DataFrame) -> Figure:
    """A heat map for each model, from tables `pooled_profile` of one language.

    Source: Causal Estimation of Memorisation Profiles, figure 2.
    """
    cells = estimates(table)
    models = by_size(cells)
    figure = curves.figure_of(3.1, f"Memorisation profiles: {looks.subject(table)}")
    row = figure.subplots(1, len(models), sharey=True, squeeze=False)[0]
    reach = largest(cells)
    for axes, model in zip(row, models, strict=True):
        mesh = draw_cells(axes, cells[cells["model"] == model], reach)
        axes.set_title(model)
        axes.set_xlabel("checkpoint (macro-batches)")
    row[0].set_ylabel("macro-batch of the strings")
    figure.colorbar(mesh, ax=row, label=looks.EFFECT, fraction=0.03, pad=0.01)
    curves.legend(figure, cell_handles(), looks.runs_note(table))
    return figure


@style.styled
def panel_profile(table: pd.DataFrame, since: pd.DataFrame) -> Figure:
    """The profile of a user's panel, from its tables `panel_profile` and `panel_persistence`.

    Source: Causal Estimation of Memorisation Profiles, figures 1 and 4.
    """
    cells = table[table["estimator"] == DIFFERENCE_IN_DIFFERENCES]
    figure = curves.figure_of(3.1, f"The profile of the panel {table['panel'].iloc[0]}")
    left, right = figure.subplots(1, 2)
    kind, is_loss = table[["kind_of_time", "is_loss"]].iloc[0]
    effect = "effect on minus the loss" if is_loss else "effect (units of the outcome)"
    mesh = draw_cells(left, cells, largest(cells), kind)
    left.set(title="difference-in-differences", xlabel="time", ylabel="cohort")
    left.tick_params(axis="x", rotation=0 if kind == NUMBER else 30)
    figure.colorbar(mesh, ax=left, label=effect, pad=0.02)
    right.axhline(0, **looks.ZERO)
    looks.banded(right, since, "since", looks.MODELS)
    right.set(title="mean over cohorts", xlabel="times since the treatment", ylabel=effect)
    note = f"Bands: simultaneous, 95 %, over units. {looks.FILLED}"
    curves.legend(figure, cell_handles(), note)
    return figure


def largest(cells: pd.DataFrame) -> float:
    """The largest absolute estimate of a significant cell, or of any cell if none is."""
    shown = cells[cells["significant"]] if cells["significant"].any() else cells
    return max(shown["estimate"].abs().max(), 1e-12)


def draw_cells(
    axes: Axes, cells: pd.DataFrame, reach: float, kind_of_time: str = NUMBER
) -> QuadMesh:
    """The cells of one profile: colour is the estimate, grey is not significant.

    The staircase separates times before and after the treatment.
    """
    wide = cells.pivot(index="cohort", columns="time", values="estimate")
    significant = cells.pivot(index="cohort", columns="time", values="significant")
    times, cohorts = wide.columns.to_numpy(float), wide.index.to_numpy(float)
    colour_map = matplotlib.colormaps[MAP].with_extremes(bad=NOT_SIGNIFICANT)
    mesh = axes.pcolormesh(
        np.arange(len(times) + 1),
        np.arange(len(cohorts) + 1),
        np.ma.masked_where(~significant.to_numpy(bool), wide.to_numpy()),
        cmap=colour_map,
        norm=TwoSlopeNorm(0, -reach, reach),
        edgecolor="white",
        linewidth=0.4,
    )
    first = np.searchsorted(times, cohorts)
    corners = [(x, y + up) for y, x in enumerate(first) for up in (0, 1)]
    axes.plot(*zip(*corners, strict=True), color=style.INK, linewidth=1.0)
    for axis, values in ((axes.xaxis, times), (axes.yaxis, cohorts)):
        name_ticks(axis, values, kind_of_time)
    axes.grid(False)
    return mesh


def name_ticks(axis, values: np.ndarray, kind_of_time: str) -> None:
    """At most seven ticks, in the middle of their cells; a date is written as one."""
    places = np.arange(0, len(values), -(-len(values) // 7))
    names = [
        f"{values[place]:.10g}"
        if kind_of_time == NUMBER
        else written_moment(kind_of_time, values[place])
        for place in places
    ]
    axis.set_ticks(places + 0.5, names)


def cell_handles() -> list:
    """Legend entries for grey cells and for the staircase."""
    return [
        curves.bar_handle("not significant", NOT_SIGNIFICANT),
        curves.line_handle("treatment: to the right, the strings have been trained on"),
    ]
