"""The search for settings: what every setting of a method costs and reaches."""

from __future__ import annotations

import math
import textwrap

from palimpsest.figures import elements, style
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.making import reads
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.figures import seeds as by_seed
from palimpsest.unlearning.kinds import TUNING

COLUMNS, PANEL_HEIGHT = 5, 1.35
LEAST, MOST = 0.9, 2.0  # of the ratios that are shown
FARTHEST = 2.0  # of the distances that are shown
FRONT = {"color": by_seed.COLOUR, "linewidth": 0.8, "alpha": 0.6}

POINT = {"linestyle": "none", "markeredgewidth": 0.8}
NOT_ALLOWED = {**POINT, "color": "0.6", "marker": "x", "markersize": 3.4}
OF_METHOD = {**POINT, "color": by_seed.COLOUR, "marker": "o"}
ALLOWED = {**OF_METHOD, "markersize": 3.6, "markerfacecolor": "white"}
CHOSEN = {**OF_METHOD, "markersize": 5}


@reads(table=TUNING)
def draw(table: pd.DataFrame, svg: str) -> None:
    """Draw the figure of a table `unlearning_tuning`; a PNG goes to the folder of the SVG."""
    style.save(unlearning_tuning(table), svg)


@style.styled
def unlearning_tuning(tried: pd.DataFrame) -> plt.Figure:
    """Every setting of every method: the distance left against the rise of other losses.

    The search is not about one language of the evaluation. So this figure is not among those that
    are drawn for every language.

    Source: the figure is Palimpsest's own.
    """
    methods = list(dict.fromkeys(tried["method"]))
    height = 1.5 + PANEL_HEIGHT * math.ceil(len(methods) / COLUMNS)
    n_problems = int(tried["n_problems"].max())
    figure = elements.figure_of(
        height, f"Settings that were tried, mean over {n_problems} problems"
    )
    inner = elements.panels_in(figure)
    panels = elements.grid_of(inner, len(methods), COLUMNS, sharex=True, sharey=True)
    for axes, method in zip(panels, methods, strict=True):
        draw_points(axes, tried[tried["method"] == method])
        axes.set_title(textwrap.fill(method, 20), fontsize=6.5)
    panels[0].set(xlim=(LEAST, MOST + 0.08), ylim=(-0.08, FARTHEST + 0.12))
    panels[0].set_xticks([1, 1.5, MOST], ["1", "1.5", f"{MOST:g}"])
    inner.supxlabel(
        "loss of retained or unseen strings (the larger rise), relative to the original models"
    )
    inner.supylabel("distance left (0: as retrained models,\n1: nothing done)")
    handles = [
        elements.marker_handle("chosen", by_seed.COLOUR, size=5),
        elements.line_handle("allowed", **ALLOWED),
        elements.line_handle("not allowed", **NOT_ALLOWED),
        elements.line_handle("trade-off: no setting is better in both", **FRONT),
        method_rows.ideal_handle("nothing done"),
    ]
    note = (
        "A marker per setting. Chosen: the highest final score of those that are allowed. Not "
        "allowed: the setting needs more steps than the cut-off. Markers at the upper and right "
        "edge are beyond it."
    )
    elements.legend(figure, handles, note)
    return figure


def draw_points(axes: plt.Axes, points: pd.DataFrame) -> None:
    axes.axhline(1, **method_rows.IDEAL_LINE)
    damage = points[["retain_ratio", "unseen_ratio"]].max(axis=1).to_numpy()
    distance = points["distance_left"].to_numpy()
    front = undominated(damage, distance)
    x, y = np.clip(damage, LEAST, MOST), np.clip(distance, 0, FARTHEST)
    axes.plot(x[front], y[front], drawstyle="steps-post", **FRONT)
    allowed, chosen = (points[name].to_numpy(dtype=bool) for name in ("allowed", "chosen"))
    for which, look in (
        (~allowed & ~chosen, NOT_ALLOWED),
        (allowed & ~chosen, ALLOWED),
        (chosen, CHOSEN),
    ):
        axes.plot(x[which], y[which], zorder=3, **look)


def undominated(damage: np.ndarray, distance: np.ndarray) -> np.ndarray:
    """Indices of the finite settings that no other setting beats in both, by ascending damage."""
    order = np.lexsort((distance, damage))
    order = order[np.isfinite(damage[order]) & np.isfinite(distance[order])]
    lowest = np.minimum.accumulate(distance[order])
    first = np.r_[True, lowest[1:] < lowest[:-1]] if len(order) else np.array([], dtype=bool)
    return order[first]
