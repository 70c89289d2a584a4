"""Confidences in some forget strings, with a column per method."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt, ticker
from palimpsest.unlearning import kinds
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.figures import seeds as by_seed
from palimpsest.unlearning.figures.confidences import (
    AXIS,
    RETRAINED,
    SHARE,
    bins,
    draw_pair,
    strings_of,
)
from palimpsest.unlearning.paper import PAPER

FIGURE = Figure(
    __name__,
    order=80,
    chapter="unlearning",
    title="Confidence in single strings",
    caption=(
        "The confidence of single unlearned models in the hardest, the median and the easiest "
        "forget string (rows), by method, over that of retrained models. Where two histograms "
        "do not overlap, one model gives away that it was unlearned."
    ),
    numbers="18",
    paper=PAPER,
    tables=(kinds.CONFIDENCES, kinds.HARDNESS),
)
COLUMNS, PANEL_HEIGHT = 8, 0.66


@style.styled
def unlearning_histograms(confidences: pd.DataFrame, hardness: pd.DataFrame) -> plt.Figure:
    """Histograms of the confidence of unlearned and of retrained models in some forget strings.

    Parameters
    ----------
    confidences : tables `unlearning_confidences` of one language
    hardness : tables `unlearning_hardness` of the same, for how hard a string is to forget

    Source: Are we making progress in unlearning?, appendix A.12, figure 18.
    """
    methods = method_rows.with_ends(
        [name for name in method_rows.methods_in(confidences["method"]) if name != RETRAINED],
        confidences["method"],
    )
    blocks = [methods[first : first + COLUMNS] for first in range(0, len(methods), COLUMNS)]
    models, every = list(confidences["model"].unique()), by_seed.seeds_in(confidences)
    # Several blocks of methods for several seeds would not fit on a page.
    seeds = every if len(blocks) == 1 else every[:1]
    shown = confidences[confidences["seed"].isin(seeds)]
    rows = {model: strings_of(shown, hardness, model) for model in models}
    heights = {
        model: 0.55 + (0.12 + PANEL_HEIGHT * len(strings)) * len(blocks)
        for model, strings in rows.items()
    }
    figure, parts = method_rows.figure_of_models(
        "Confidence in single strings", shown, heights, 0.85
    )
    tints = by_seed.shades(seeds)
    for model, part in parts:
        draw_blocks(part, shown[shown["model"] == model], rows[model], blocks, tints)
    handles = [
        elements.bar_handle("unlearned models", by_seed.COLOUR, 0.75),
        elements.bar_handle("retrained models", "0.55", 0.55),
    ]
    note = (
        "A row per string: those with the largest, the median and the smallest sum of epsilon over "
        "the methods. p: geometric mean of the token probabilities, or as the configuration says. "
        "Models beyond an axis are in its outermost bars."
    )
    if len(every) > len(seeds):
        note += f" Seed {seeds[0]} only; the table has all seeds."
    elements.legend(figure, handles, note)
    return figure


def draw_blocks(
    figure: plt.Figure,
    confidences: pd.DataFrame,
    strings: list[tuple[int, str, str]],
    blocks: list[list[str]],
    tints: dict,
) -> None:
    n_columns = len(blocks[0])
    grid = figure.subplots(len(strings) * len(blocks), n_columns, sharex="row", sharey="row",
                           squeeze=False)  # fmt: skip
    for block, methods in enumerate(blocks):
        for row, (seed, string_id, rank) in enumerate(strings):
            panels = grid[block * len(strings) + row]
            of_string = confidences[
                (confidences["seed"] == seed) & (confidences["string_id"] == string_id)
            ]
            draw_row(panels, of_string, methods, tints[seed])
            named = f"seed {seed}\n{rank}" if len(tints) > 1 else rank
            panels[0].set_ylabel(named, fontsize=7)
            if row == 0:
                for axes, method in zip(panels, methods, strict=False):
                    axes.set_title(textwrap.fill(method, 14), fontsize=6.5, pad=2)
    figure.supxlabel(AXIS)
    figure.supylabel(SHARE)


def draw_row(
    panels: Sequence[plt.Axes], of_string: pd.DataFrame, methods: list[str], colour
) -> None:
    by_method = {name: rows["confidence"].to_numpy() for name, rows in of_string.groupby("method")}
    edges = bins(list(by_method.values()))
    for axes, method in zip(panels, methods, strict=False):
        draw_pair(axes, by_method.get(method, np.array([])), by_method[RETRAINED], edges, colour)
    for axes in panels[len(methods) :]:
        axes.remove()
    panels[0].xaxis.set_major_locator(ticker.MaxNLocator(2))
