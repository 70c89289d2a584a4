"""The epsilons of the forget strings."""

from __future__ import annotations

import math
import textwrap

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.unlearning import kinds
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.figures import seeds as by_seed
from palimpsest.unlearning.paper import PAPER

FIGURE = Figure(
    __name__,
    order=90,
    chapter="unlearning",
    title="Epsilon of the forget strings",
    caption=(
        "How the forget strings' epsilons are distributed, by method; 0: unlearned and "
        "retrained models treat the string alike; right of the dotted line, a string has no "
        "points. See whether a method fails a little on all strings or completely on some."
    ),
    numbers="13",
    paper=PAPER,
    tables=(kinds.EPSILONS, kinds.SCORES),
)
COLUMNS = 5
CAP = 50.0  # the epsilon of an attack without errors, or nearly without
WIDTH = 0.5  # width of a bar; the points of a string are halved for each such step of epsilon
PANEL_HEIGHT, LEAST_HEIGHT = 1.0, 1.8  # inches; all panels together need room for the label
EDGE_LINE = {"color": "0.5", "linewidth": 0.8, "linestyle": (0, (1, 1.6))}


@style.styled
def unlearning_epsilons(epsilons: pd.DataFrame, scores: pd.DataFrame) -> plt.Figure:
    """Histograms of the epsilons of the forget strings, with a panel per method.

    Parameters
    ----------
    epsilons : tables `epsilons` of one language
    scores : tables `unlearning_scores` of the same language, for the number of models

    Source: Are we making progress in unlearning?, appendix A.9, figure 13.
    """
    shown = method_rows.of_main_setup(epsilons)
    scores = method_rows.of_main_setup(scores)
    n_models = int(scores["n_models"].min())
    rows = {
        model: method_rows.with_ends(by_epsilon(of_model), of_model["method"])
        for model, of_model in shown.groupby("model", sort=False)
    }
    heights = {
        model: 0.45 + max(LEAST_HEIGHT, PANEL_HEIGHT * math.ceil(len(methods) / COLUMNS))
        for model, methods in rows.items()
    }
    figure, parts = method_rows.figure_of_models(
        "Epsilon of the forget strings", shown, heights, 0.75
    )
    for model, part in parts:
        draw_histograms(part, shown[shown["model"] == model], rows[model], n_models)
    colour = style.SETUPS[shown["setup"].iloc[0]].colour
    handles = [
        elements.bar_handle("full points", colour),
        elements.bar_handle("fewer points (halved at each bar)", style.tinted(colour, 0.5)),
        elements.bar_handle("no points", "0.3"),
        elements.line_handle("from here on no points", **EDGE_LINE),
    ]
    note = (
        f"Set-up {shown['setup'].iloc[0]}, {n_models} models of each kind: the largest finite "
        f"epsilon that an attack on these models can show is about ln({n_models - 1}) = "
        f"{math.log(max(n_models - 1, 1)):.1f}. Rightmost bar (∞): strings by which an attack "
        "tells all models apart without any error. Bars: share of the strings, over all "
        f"{shown['repetition'].nunique()} repetitions."
    )
    seeds = by_seed.seeds_in(shown)
    if len(seeds) > 1:
        note += f" Parts of a bar, from the bottom: seeds {', '.join(map(str, seeds))}."
    elements.legend(figure, handles, note)
    return figure


def by_epsilon(epsilons: pd.DataFrame) -> list[str]:
    return method_rows.best_first(-epsilons.groupby("method", sort=False)["epsilon"].median())


def last_edge(n_models: int) -> float:
    """The smallest epsilon for which a string has no points."""
    return float(max(1, math.ceil(math.log(max(n_models - 1, 1)))))


def draw_histograms(
    figure: plt.Figure, epsilons: pd.DataFrame, methods: list[str], n_models: int
) -> None:
    n_rows = math.ceil(len(methods) / COLUMNS)
    grid = figure.subplots(n_rows, COLUMNS, sharex=True, sharey=True, squeeze=False)
    for axes, method in zip(grid.flat, methods, strict=False):
        draw_histogram(axes, epsilons[epsilons["method"] == method], method, n_models)
    for axes in grid.flat[len(methods) :]:
        axes.remove()
    # The lowest panel of each column has tick labels, even if it is not in the last row.
    for column in range(min(COLUMNS, len(methods))):
        lowest = grid.flat[(len(methods) - 1 - column) // COLUMNS * COLUMNS + column]
        lowest.tick_params(axis="x", labelbottom=True)
    figure.supxlabel("epsilon of a forget string (lower: better forgotten)")
    figure.supylabel("share of strings (0 to 1)")


def draw_histogram(axes: plt.Axes, epsilons: pd.DataFrame, method: str, n_models: int) -> None:
    """The share of strings in bins of `WIDTH`; the points are halved from bin to bin."""
    edge = last_edge(n_models)
    values, perfect = epsilons["epsilon"].clip(lower=0), epsilons["epsilon"] >= CAP
    bins = np.arange(0, max(edge, math.ceil(values[~perfect].max()) + WIDTH if (~perfect).any()
                            else edge) + WIDTH / 2, WIDTH)  # fmt: skip
    infinity = edge + 1.5 * WIDTH
    lefts = [*bins[:-1], infinity]
    colour = (
        style.END if method in method_rows.ENDS else style.SETUPS[epsilons["setup"].iloc[0]].colour
    )
    fills = [fill_of(left, edge, colour) for left in lefts]
    seeds, height = by_seed.seeds_in(epsilons), np.zeros(len(lefts))
    for seed in seeds:
        inside = epsilons["seed"] == seed
        counts, _ = np.histogram(values[inside & ~perfect], bins)
        share = np.array([*counts, (inside & perfect).sum()]) / len(values)
        axes.bar(
            lefts, share, WIDTH * 0.92, height, align="edge", color=fills,
            edgecolor="white" if len(seeds) > 1 else None, linewidth=0.7 * (len(seeds) > 1),
        )  # fmt: skip
        height += share
    axes.axvline(edge, **EDGE_LINE)
    ticks = [*range(0, int(edge) + 1, 1 if edge < 5 else 2), infinity + WIDTH / 2]
    axes.set_xticks(ticks, [*(f"{tick:g}" for tick in ticks[:-1]), "∞"])
    axes.set_ylim(0, 1.02)
    axes.set_yticks([0, 0.5, 1], ["0", "", "1"])
    axes.set_title(
        textwrap.fill(method, 22),
        fontsize=6.5,
        pad=2,
        color="0.35" if method in method_rows.ENDS else "black",
    )
    axes.grid(axis="x", visible=False)


def fill_of(left: float, edge: float, colour) -> str | tuple[float, float, float]:
    return "0.3" if left >= edge else style.tinted(colour, 0.3 + 0.7 * 2.0 ** -(left / WIDTH))
