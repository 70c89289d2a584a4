"""Figures of single strings under unlearning: their epsilons, and which are hard to forget."""

import math
import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from palimpsest.figures import curves, style
from palimpsest.figures.copies import MARKER, copies_class, copies_handles, filled
from palimpsest.unlearning.figures import methods as shared
from palimpsest.unlearning.figures import seeds as by_seed

COLUMNS = 5
CAP = 50.0  # the epsilon of an attack without errors, or nearly without
WIDTH = 0.5  # width of a bar; the points of a string are halved for each such step of epsilon
PANEL_HEIGHT, LEAST_HEIGHT = 1.0, 1.8  # inches; all panels together need room for the label
EDGE_LINE = {"color": "0.5", "linewidth": 0.8, "linestyle": (0, (1, 1.6))}
HARDNESS_HEIGHT = 2.5
GROUP_SPACE = 1.0  # bars, between the strings of two seeds
SEED_MARKERS = "osD^v"


@style.styled
def unlearning_epsilons(epsilons: pd.DataFrame, scores: pd.DataFrame) -> Figure:
    """Histograms of the epsilons of the forget strings, with a panel per method.

    Parameters
    ----------
    epsilons : tables `epsilons` of one language
    scores : tables `unlearning_scores` of the same language, for the number of models

    Source: Are we making progress in unlearning?, appendix A.9, figure 13.
    """
    shown = shared.of_main_setup(epsilons)
    scores = shared.of_main_setup(scores)
    n_models = int(scores["n_models"].min())
    rows = {
        model: shared.with_ends(by_epsilon(of_model), of_model["method"])
        for model, of_model in shown.groupby("model", sort=False)
    }
    heights = {
        model: 0.45 + max(LEAST_HEIGHT, PANEL_HEIGHT * math.ceil(len(methods) / COLUMNS))
        for model, methods in rows.items()
    }
    figure = shared.titled("Epsilon of the forget strings", shown, 0.75 + sum(heights.values()))
    inner = curves.panels_in(figure)
    for model, part in shared.of_models(inner, heights):
        draw_histograms(part, shown[shown["model"] == model], rows[model], n_models)
    colour = style.SETUPS[shown["setup"].iloc[0]].colour
    handles = [
        curves.bar_handle("full points", colour),
        curves.bar_handle("fewer points (halved at each bar)", style.tinted(colour, 0.5)),
        curves.bar_handle("no points", "0.3"),
        Line2D([], [], label="from here on no points", **EDGE_LINE),
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
    curves.legend(figure, handles, note)
    return figure


def by_epsilon(epsilons: pd.DataFrame) -> list[str]:
    """The methods, lowest median epsilon first."""
    return shared.best_first(-epsilons.groupby("method", sort=False)["epsilon"].median())


def last_edge(n_models: int) -> float:
    """The smallest epsilon for which a string has no points."""
    return float(max(1, math.ceil(math.log(max(n_models - 1, 1)))))


def draw_histograms(
    figure: Figure, epsilons: pd.DataFrame, methods: list[str], n_models: int
) -> None:
    """A panel per method; strings on which an attack makes no error have a separate bar."""
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
    figure.supxlabel("epsilon of a forget string (lower: better forgotten)", fontsize=8)
    figure.supylabel("share of strings (0 to 1)", fontsize=8)


def draw_histogram(axes: Axes, epsilons: pd.DataFrame, method: str, n_models: int) -> None:
    """The share of strings in bins of `WIDTH`; the points are halved from bin to bin."""
    edge = last_edge(n_models)
    values, perfect = epsilons["epsilon"].clip(lower=0), epsilons["epsilon"] >= CAP
    bins = np.arange(0, max(edge, math.ceil(values[~perfect].max()) + WIDTH if (~perfect).any()
                            else edge) + WIDTH / 2, WIDTH)  # fmt: skip
    infinity = edge + 1.5 * WIDTH
    lefts = [*bins[:-1], infinity]
    colour = style.END if method in shared.ENDS else style.SETUPS[epsilons["setup"].iloc[0]].colour
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
        color="0.35" if method in shared.ENDS else "black",
    )
    axes.grid(axis="x", visible=False)


def fill_of(left: float, edge: float, colour) -> str | tuple[float, float, float]:
    """The colour of a bar: lighter for fewer points, and dark where a string has no points."""
    return "0.3" if left >= edge else style.tinted(colour, 0.3 + 0.7 * 2.0 ** -(left / WIDTH))


@style.styled
def unlearning_hardness(hardness: pd.DataFrame) -> Figure:
    """The forget strings by the sum of their epsilons over the methods, and by their loss gap.

    Parameters
    ----------
    hardness : tables `unlearning_hardness` of one language

    Source: Are we making progress in unlearning?, appendix A.9, figure 14, for the left panel; the
    right panel is Palimpsest's own.
    """
    models = list(hardness["model"].unique())
    figure = shared.titled(
        "Strings that are hard to forget", hardness, 0.7 + HARDNESS_HEIGHT * len(models)
    )
    inner = curves.panels_in(figure)
    for model, part in shared.of_models(inner, dict.fromkeys(models, HARDNESS_HEIGHT)):
        strings = hardness[hardness["model"] == model]
        bars, scatter = part.subplots(1, 2, width_ratios=[3, 2], sharey=True)
        draw_ranked(bars, strings)
        draw_against_gap(scatter, strings)
    seeds = by_seed.seeds_in(hardness)
    note = (
        "Each bar and each marker is a forget string. The sum is over its mean epsilons under "
        f"{int(hardness['n_methods'].max())} methods, each clipped at the largest epsilon that "
        "these models can show. The loss gap says how much training on the string had helped to "
        "predict it."
    )
    handles = copies_handles(hardness["count"])
    if len(seeds) > 1:
        note += " Every seed has its own strings."
        handles += [
            curves.line_handle(f"seed {seed}", "0.3", linestyle="none", marker=marker,
                               markersize=MARKER, markerfacecolor="white", markeredgewidth=0.7)
            for seed, marker in seed_markers(seeds).items()
        ]  # fmt: skip
    curves.legend(figure, handles, note)
    return figure


def seed_markers(seeds: list[int]) -> dict[int, str]:
    """The shape of the markers of every seed; the fill of a marker is the number of copies."""
    return {seed: SEED_MARKERS[place % len(SEED_MARKERS)] for place, seed in enumerate(seeds)}


def draw_ranked(axes: Axes, strings: pd.DataFrame) -> None:
    """A bar per string, easiest first; the strings of a seed are next to each other."""
    middles, first = {}, 1.0
    for seed, of_seed in strings.groupby("seed"):
        ranked = of_seed.sort_values("epsilon_sum", kind="stable")
        fills = [filled("0.3", least) for least in copies_class(ranked["count"])]
        places = first + np.arange(len(ranked))
        axes.bar(
            places, ranked["epsilon_sum"], width=0.85, color=fills, edgecolor="0.3", linewidth=0.5
        )
        middles[seed] = places.mean()
        first = places[-1] + 1 + GROUP_SPACE
    axes.set_xlabel("rank of the forget string, easiest first")
    if len(middles) > 1:
        axes.set_xticks(list(middles.values()), [f"seed {seed}" for seed in middles])
        axes.tick_params(axis="x", length=0)
        axes.set_xlabel("rank of the forget string in its seed, easiest first")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlim(0, first - GROUP_SPACE)
    axes.set_ylabel("sum of epsilon\nover the methods")
    axes.grid(axis="x", visible=False)


def draw_against_gap(axes: Axes, strings: pd.DataFrame) -> None:
    """A marker per string; the fill is stronger for strings with more copies."""
    markers = seed_markers(by_seed.seeds_in(strings))
    for (seed, least), members in strings.groupby(["seed", copies_class(strings["count"])]):
        axes.plot(
            members["loss_gap"], members["epsilon_sum"], linestyle="none", marker=markers[seed],
            markersize=MARKER, markerfacecolor=filled("0.3", least),
            markeredgecolor="0.3", markeredgewidth=0.7,
        )  # fmt: skip
    axes.set_xlabel("loss gap: retrained − original\n(nats per token)")
    found = [
        spearman(of_seed["loss_gap"], of_seed["epsilon_sum"])
        for _, of_seed in strings.groupby("seed")
    ]
    shown = ["undefined" if np.isnan(value) else signed(value) for value in found]
    axes.set_title(f"rank correlation {', '.join(shown)}")


def spearman(first: pd.Series, second: pd.Series) -> float:
    """Spearman's rank correlation of two columns; NaN for fewer than 3 rows or equal values."""
    ranks = pd.concat([first, second], axis=1).dropna().rank()
    if len(ranks) < 3 or (ranks.nunique() == 1).any():
        return np.nan
    return float(ranks.corr().iloc[0, 1])


def signed(value: float) -> str:
    """A correlation for a reader."""
    return f"{value:.2f}".replace("-", "−")
