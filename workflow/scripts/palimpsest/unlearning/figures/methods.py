"""Parts that the figures of unlearning share: order of methods, rows, and numbers of points.

A method has one row or one number in a figure. Doing nothing (`none`) and the ideal (`retrain`) are
not methods. They are drawn separately, in grey, and show the range for the values of methods.
"""

import math
import textwrap
from collections.abc import Callable, Iterable, Iterator

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D

from palimpsest.figures import curves, style
from palimpsest.unlearning.setups import ENDS, NONE, RETRAIN

END_LABELS = {RETRAIN: "retrain (the ideal)", NONE: "none (the original)"}
QUALITY = "forgetting quality (0 to 1)"
ROW_HEIGHT = 0.16  # inches, of a method
MARKER = 4.2
SLOW = " *"
SLOW_NOTE = "Hollow markers and *: slower than the cut-off of the study allows."
IDEAL_LINE = {"color": "0.6", "linestyle": (0, (4, 1.5)), "linewidth": 0.9, "zorder": 1}
RINGS = (5.5, 9, 13, 17, 22)  # points: possible distances between a number and its marker
DIRECTIONS = 12
NUMBER_SIZE = 6.0


def of_main_setup(study: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first set-up; figures with only one set-up show this one."""
    return study[study["setup"] == study["setup"].iloc[0]]


def methods_in(names: Iterable[str]) -> list[str]:
    """The methods in `names`, in the same order, without the two ends."""
    return [name for name in dict.fromkeys(names) if name not in ENDS]


def best_first(values: pd.Series) -> list[str]:
    """The methods of an index, highest value first; methods with equal values by name."""
    ordered = values.sort_index().sort_values(ascending=False, kind="stable")
    return methods_in(ordered.index)


def with_ends(methods: list[str], names: Iterable[str]) -> list[str]:
    """The methods, with those of the two ends that are in `names` before and after them."""
    present = set(names)
    top, bottom = ([end] if end in present else [] for end in ENDS)
    return [*top, *methods, *bottom]


def slow_methods(scores: pd.DataFrame) -> set[str]:
    """The methods that exceed the cut-off in at least one repetition."""
    return set(scores.loc[~scores["within_cutoff"].astype(bool), "method"])


def of_models(figure: Figure, heights: dict[str, float]) -> Iterator[tuple[str, SubFigure]]:
    """A part of the figure for every model; if there are several, each has the model's name.

    `heights` are in inches.
    """
    parts = figure.subfigures(len(heights), 1, height_ratios=list(heights.values()), squeeze=False)
    for model, part in zip(heights, parts[:, 0], strict=True):
        if len(heights) > 1:
            part.suptitle(model, x=0.01, ha="left", fontsize=8, weight="normal")
        yield model, part


def titled(title: str, study: pd.DataFrame, height: float) -> Figure:
    """An empty figure whose title names its subject."""
    n_seeds = study["seed"].nunique()
    seeds = f", {n_seeds} seeds" if n_seeds > 1 else ""
    return curves.figure_of(height, f"{title}: {curves.subject(study)}{seeds}")


def without_panels(title: str, study: pd.DataFrame, what: str) -> Figure:
    """A figure that only says why there is nothing to show."""
    figure = titled(title, study, 1.2)
    figure.text(0.01, 0.4, textwrap.fill(what, style.CHARACTERS_PER_LINE), fontsize=8, va="center")
    return figure


def grid_of(figure: SubFigure, n: int, columns: int, **shared) -> list[Axes]:
    """`n` panels in rows of `columns`; the lowest panel of a column has labels at its x ticks.

    `shared` are keywords of `subplots`.
    """
    n_columns = min(columns, n)
    grid = figure.subplots(math.ceil(n / n_columns), n_columns, squeeze=False, **shared)
    for axes in grid.flat[n:]:
        axes.remove()
    panels = list(grid.flat[:n])
    for axes in panels[-n_columns:]:
        axes.tick_params(axis="x", labelbottom=True)
    return panels


# Rows of methods


def name_rows(axes: Axes, rows: list[str], slow: Iterable[str] = ()) -> None:
    """Name the rows of methods, from the top, in a panel and in panels that share its rows."""
    names = [END_LABELS.get(row, row + SLOW * (row in slow)) for row in rows]
    axes.set_yticks(range(len(rows)), names, fontsize=6.5)
    axes.set_ylim(len(rows) - 0.4, -0.6)
    for label, row in zip(axes.get_yticklabels(), rows, strict=True):
        label.set_color("0.35" if row in ENDS else "black")


def part_ends(axes: Axes, rows: list[str]) -> None:
    """Lines that separate the two ends from the methods; rows have no ticks."""
    axes.tick_params(axis="y", length=0)
    if "retrain" in rows:
        axes.axhline(0.5, color="0.8", linewidth=0.6)
    if "none" in rows:
        axes.axhline(len(rows) - 1.5, color="0.8", linewidth=0.6)


def unit_axis(axes: Axes, label: str, highest: float = 1.0) -> None:
    """An x axis for shares and scores: from 0 to `highest`, rounded up to a fifth, at most 1."""
    end = unit_end(highest)
    axes.set_xlim(-0.04 * end, 1.04 * end)
    axes.set_xticks(np.linspace(0, end, 5), unit_ticks(end))
    axes.set_xlabel(label)


def unit_end(highest: float) -> float:
    """The end of an axis for scores up to `highest`; scores are far from 1 with few models."""
    return float(np.clip(math.ceil(highest / 0.2 - 1e-9) / 5, 0.2, 1.0))


def unit_ticks(end: float) -> list[str]:
    """Labels of five ticks from 0 to `end`: its ends and its middle."""
    return ["0", "", f"{end / 2:g}", "", f"{end:g}"]


def reach(row) -> np.ndarray | None:
    """The distances [[down], [up]] from a mean to the ends of its interval; None without one."""
    if not np.isfinite([row.lower, row.upper]).all():
        return None
    return np.clip([[row.mean - row.lower], [row.upper - row.mean]], 0, None)


def setup_look(setup: str, method: str, slow: Iterable[str] = ()) -> dict:
    """Colour and shape of a set-up; grey for the ends, hollow if beyond the cut-off."""
    colour = style.END if method in ENDS else style.SETUPS[setup].colour
    return {
        "color": colour,
        "marker": style.SETUP_MARKERS[setup],
        "markersize": MARKER,
        "markerfacecolor": "white" if method in slow else colour,
        "markeredgewidth": 0.9,
    }


def setup_handles(setups: list[str]) -> list[Line2D]:
    """A legend entry per set-up."""
    return [
        curves.line_handle(
            f"set-up {style.SETUPS[setup].label}", style.SETUPS[setup].colour, linestyle="none",
            marker=style.SETUP_MARKERS[setup], markersize=MARKER,
        )
        for setup in setups
    ]  # fmt: skip


def ideal_handle(label: str) -> Line2D:
    """A legend entry for the line at the value of retraining."""
    return Line2D([], [], label=label, **IDEAL_LINE)


def numbered(methods: list[str]) -> dict[str, str]:
    """The number of every method, as text."""
    return {method: str(number) for number, method in enumerate(methods, start=1)}


def repetitions_note(n: int, what: str = "Markers") -> str:
    """One sentence on the meaning of markers and their bars."""
    if n == 1:
        return f"{what}: one repetition of the evaluation, so without an interval."
    return f"{what}: mean over {n} repetitions of the evaluation; bars: 95 % intervals (Student)."


# Numbered points


def number_key(methods: list[str], slow: Iterable[str] = ()) -> list[Line2D]:
    """A legend entry for every method: the number at its point, and its name."""
    return [
        curves.line_handle(
            method + SLOW * (method in slow), linestyle="none", marker=f"${number}$",
            markersize=4.2 if number < 10 else 7.2, markeredgewidth=0,
        )
        for number, method in enumerate(methods, start=1)
    ]  # fmt: skip


def number_points(axes: Axes, points: list[tuple[str, float, float]], colour=style.INK) -> None:
    """Put labels near their points; if there is room, they overlap neither points nor labels.

    The figure's layout and limits must be final, because distances are measured on paper.

    Parameters
    ----------
    points : label (a number or a short word), x and y of each
    """
    to_paper = 72 / axes.figure.dpi
    box = axes.get_window_extent()
    page = (np.round(box.min * to_paper), np.round(box.max * to_paper))
    places = np.array([axes.transData.transform((x, y)) for _, x, y in points]) * to_paper
    places = np.round(places)
    taken: list[tuple[np.ndarray, np.ndarray]] = []
    for (label, x, y), place in zip(points, places, strict=True):
        size = np.array([3.8 * len(label) + 1, NUMBER_SIZE])
        offset = free_offset(place, size, places, taken, page)
        taken.append((place + offset, size))
        far = np.hypot(*offset) > RINGS[1]
        axes.annotate(
            label, (x, y), xytext=offset, textcoords="offset points", ha="center",
            va="center", fontsize=NUMBER_SIZE, color=colour, zorder=5,
            arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.4, "shrinkA": 2,
                        "shrinkB": 1} if far else None,
        ).set_in_layout(False)  # fmt: skip


def free_offset(
    place: np.ndarray,
    size: np.ndarray,
    points: np.ndarray,
    taken: list[tuple[np.ndarray, np.ndarray]],
    page: tuple[np.ndarray, np.ndarray],
) -> tuple[float, float]:
    """The offset of a label from its point: the nearest free place, or else the least crowded.

    All arguments are in points of paper, float[2] or float[points, 2]; `taken` has the centre and
    the size of every label that is placed already.
    """
    turns = 2 * np.pi * (np.arange(DIRECTIONS) / DIRECTIONS + 1 / 8)
    best, fewest = (0.0, 0.0), np.inf
    for radius in RINGS:
        for turn in turns:
            offset = np.round(radius * np.array([np.cos(turn), np.sin(turn)]))
            centre = place + offset
            in_the_way = int((np.abs(points - centre) < size / 2 + 1.5).all(axis=1).sum())
            in_the_way += sum(
                bool((np.abs(other - centre) < (size + its_size) / 2).all())
                for other, its_size in taken
            )
            outside = (centre - size / 2 < page[0]).any() or (centre + size / 2 > page[1]).any()
            crowd = in_the_way + 2 * outside
            if crowd == 0:
                return tuple(offset)
            if crowd < fewest:
                best, fewest = tuple(offset), crowd
    return best


def number_ends(axes: Axes, ends: list[tuple[str, float, float]]) -> None:
    """Put labels to the right of the ends of curves, one above the other.

    The labels alternate between two columns, so that twice as many fit.
    """
    to_paper = 72 / axes.figure.dpi
    ends = sorted(ends, key=lambda end: end[2])
    places = np.array([axes.transData.transform((x, y))[1] for _, x, y in ends]) * to_paper
    heights = spread_out(np.round(places), NUMBER_SIZE / 2)
    for index, ((label, x, y), place, height) in enumerate(zip(ends, places, heights, strict=True)):
        axes.annotate(
            label, (x, y), xytext=(9 + 13 * (index % 2), height - np.round(place)), ha="left",
            textcoords="offset points", va="center", fontsize=NUMBER_SIZE, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": "0.75", "linewidth": 0.4, "shrinkA": 0,
                        "shrinkB": 1, "relpos": (0, 0.5)},
        ).set_in_layout(False)  # fmt: skip


def spread_out(places: np.ndarray, gap: float) -> np.ndarray:
    """Move ascending places as little as possible, so that neighbours have at least a gap.

    Source: least squares under order constraints, solved by pooling adjacent violators.
    """
    wanted = places - gap * np.arange(len(places))
    blocks: list[list[float]] = []
    for value in wanted:
        blocks.append([value])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    means = [np.mean(block) for block in blocks for _ in block]
    return np.array(means) + gap * np.arange(len(places))


def labelled(methods: list[str], places: pd.DataFrame) -> list[tuple[str, float, float]]:
    """The points for `number_points`: methods have numbers, the two ends have names.

    `places` has one row per method, with x and y in its two columns.
    """
    labels = {method: str(number) for number, method in enumerate(methods, start=1)}
    labels |= {end: end for end in ENDS}
    points = [(labels[method], x, y) for method, x, y in places.dropna().itertuples()]
    # The words are placed first: they need more room.
    return sorted(points, key=lambda point: -len(point[0]))


def after_layout(figure: Figure, number: Callable[[], None]) -> Figure:
    """Compute the figure's layout, then call `number`, which numbers its points."""
    figure.draw_without_rendering()
    number()
    return figure
