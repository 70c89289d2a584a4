"""Rows and numbers of methods, which the figures of unlearning share.

A method has one row or one number in a figure. Doing nothing (`none`) and the ideal (`retrain`) are
not methods. They are drawn separately, in grey, and show the range for the values of methods.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Iterator

from palimpsest.figures import elements, style
from palimpsest.figures.figure import NOTHING_DRAWN
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.unlearning.run.setups import ENDS, NONE, RETRAIN

END_LABELS = {RETRAIN: "retrain (the ideal)", NONE: "none (the original)"}
QUALITY = "forgetting quality (0 to 1)"
ROW_HEIGHT = 0.16  # inches, of a method
MARKER = 4.2
SLOW = " *"
SLOW_NOTE = "Hollow markers and *: slower than the cut-off of the study allows."
IDEAL_LINE = {"color": "0.6", "linestyle": (0, (4, 1.5)), "linewidth": 0.9, "zorder": 1}


def of_main_setup(study: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first set-up; figures with only one set-up show this one."""
    return study[study["setup"] == study["setup"].iloc[0]]


def methods_in(names: Iterable[str]) -> list[str]:
    return [name for name in dict.fromkeys(names) if name not in ENDS]


def best_first(values: pd.Series) -> list[str]:
    """The methods of an index, highest value first; methods with equal values by name."""
    ordered = values.sort_index().sort_values(ascending=False, kind="stable")
    return methods_in(ordered.index)


def with_ends(methods: list[str], names: Iterable[str]) -> list[str]:
    """The methods, with the ends that are in `names`: `retrain` first and `none` last."""
    present = set(names)
    top, bottom = ([end] if end in present else [] for end in ENDS)
    return [*top, *methods, *bottom]


def slow_methods(scores: pd.DataFrame) -> set[str]:
    return set(scores.loc[~scores["within_cutoff"].astype(bool), "method"])


def of_models(figure: plt.Figure, heights: dict[str, float]) -> Iterator[tuple[str, plt.Figure]]:
    """Every model with its part of the figure; the part is titled if there are several models.

    `heights` are in inches.
    """
    parts = figure.subfigures(len(heights), 1, height_ratios=list(heights.values()), squeeze=False)
    for model, part in zip(heights, parts[:, 0], strict=True):
        if len(heights) > 1:
            part.suptitle(model, x=0.01, ha="left", fontsize=8, weight="normal")
        yield model, part


def titled(title: str, study: pd.DataFrame, height: float) -> plt.Figure:
    n_seeds = study["seed"].nunique()
    seeds = f", {n_seeds} seeds" if n_seeds > 1 else ""
    return elements.figure_of(height, f"{title}: {elements.subject(study)}{seeds}")


def figure_of_models(
    title: str, study: pd.DataFrame, heights: dict[str, float], rest: float
) -> tuple[plt.Figure, Iterator[tuple[str, plt.Figure]]]:
    """A figure, and every model with its part of the figure; the legend has its own space.

    `heights` of the parts, and of the `rest`, title and legend, are in inches.
    """
    figure = titled(title, study, rest + sum(heights.values()))
    return figure, of_models(elements.panels_in(figure), heights)


def without_panels(title: str, study: pd.DataFrame, what: str) -> plt.Figure:
    """A figure that only says why there is nothing to show."""
    figure = titled(title, study, 1.2)
    words = textwrap.fill(what, style.CHARACTERS_PER_LINE)
    figure.text(0.01, 0.4, words, fontsize=8, va="center", gid=NOTHING_DRAWN)
    return figure


def name_rows(axes: plt.Axes, rows: list[str], slow: Iterable[str] = ()) -> None:
    """Name the rows of methods, from the top, in a panel and in panels that share its rows."""
    names = [END_LABELS.get(row, row + SLOW * (row in slow)) for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=6.5)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_color("0.35" if row in ENDS else "black")


def part_ends(axes: plt.Axes, rows: list[str]) -> None:
    """Lines that separate the two ends from the methods; rows have no ticks."""
    axes.tick_params(axis="y", length=0)
    if "retrain" in rows:
        axes.axhline(0.5, color="0.8", linewidth=0.6)
    if "none" in rows:
        axes.axhline(len(rows) - 1.5, color="0.8", linewidth=0.6)


def unit_axis(axes: plt.Axes, label: str, highest: float = 1.0) -> None:
    """An x axis for shares and scores: from 0 to `highest`, rounded up to a fifth, at most 1."""
    end = unit_end(highest)
    axes.set_xlim(-0.04 * end, 1.04 * end)
    axes.set_xticks(np.linspace(0, end, 5), unit_ticks(end))
    axes.set_xlabel(label)


def unit_end(highest: float) -> float:
    """The end of an axis for scores up to `highest`, which is far from 1 with few models."""
    return float(np.clip(math.ceil(highest / 0.2 - 1e-9) / 5, 0.2, 1.0))


def unit_ticks(end: float) -> list[str]:
    return ["0", "", f"{end / 2:g}", "", f"{end:g}"]


def reach(row) -> np.ndarray | None:
    """The distances [[down], [up]] from a mean to the ends of its interval; None without one."""
    if not np.isfinite([row.lower, row.upper]).all():
        return None
    return elements.reach(*np.array([[row.mean], [row.lower], [row.upper]]))


def setup_look(setup: str, method: str, slow: Iterable[str] = ()) -> dict:
    colour = style.END if method in ENDS else style.SETUPS[setup].colour
    return {
        "color": colour,
        "marker": style.SETUPS[setup].marker,
        "markersize": MARKER,
        "markerfacecolor": "white" if method in slow else colour,
        "markeredgewidth": 0.9,
    }


def ideal_handle(label: str):
    return elements.line_handle(label, **IDEAL_LINE)


def numbered(methods: list[str]) -> dict[str, str]:
    return {method: str(number) for number, method in enumerate(methods, start=1)}


def repetitions_note(n: int, what: str = "Markers") -> str:
    if n == 1:
        return f"{what}: one repetition of the evaluation, so without an interval."
    return f"{what}: mean over {n} repetitions of the evaluation; bars: 95 % intervals (Student)."


def number_key(methods: list[str], slow: Iterable[str] = ()) -> list:
    return [
        elements.line_handle(
            method + SLOW * (method in slow), linestyle="none", marker=f"${number}$",
            markersize=4.2 if number < 10 else 7.2, markeredgewidth=0,
        )
        for number, method in enumerate(methods, start=1)
    ]  # fmt: skip


def labelled(methods: list[str], places: pd.DataFrame) -> list[tuple[str, float, float]]:
    """The points for `point_labels.label_points`: methods have numbers, the two ends have names.

    `places` has one row per method; its two columns are x and y.
    """
    labels = {method: str(number) for number, method in enumerate(methods, start=1)}
    labels |= {end: end for end in ENDS}
    points = [(labels[method], x, y) for method, x, y in places.dropna().itertuples()]
    # The words are placed first: they need more room.
    return sorted(points, key=lambda point: -len(point[0]))
