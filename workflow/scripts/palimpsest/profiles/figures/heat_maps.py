"""Heat maps of profiles: cohorts by times."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.libraries import collections, colors, matplotlib, np, pd, plt
from palimpsest.tables.user_values import NUMBER, written_moment

MAP = "PuOr_r"
NOT_SIGNIFICANT = "0.93"


def largest(cells: pd.DataFrame) -> float:
    """The largest absolute estimate of a significant cell, or of any cell if none is."""
    shown = cells[cells["significant"]] if cells["significant"].any() else cells
    return max(shown["estimate"].abs().max(), 1e-12)


def draw_cells(
    axes: plt.Axes, cells: pd.DataFrame, reach: float, kind_of_time: str = NUMBER
) -> collections.QuadMesh:
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
        norm=colors.TwoSlopeNorm(0, -reach, reach),
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
    places = np.arange(0, len(values), -(-len(values) // 7))
    names = [
        f"{values[place]:.10g}"
        if kind_of_time == NUMBER
        else written_moment(kind_of_time, values[place])
        for place in places
    ]
    axis.set_ticks(places + 0.5, names)


def cell_handles() -> list:
    return [
        elements.bar_handle("not significant", NOT_SIGNIFICANT),
        elements.line_handle("treatment: to the right, the strings have been trained on"),
    ]
