"""Figures of single models' confidences in forget strings, unlearned beside retrained."""

import math
import textwrap
from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.ticker import MaxNLocator

from palimpsest.figures import curves, style
from palimpsest.unlearning.figures import methods as shared
from palimpsest.unlearning.figures import seeds as by_seed

RETRAINED = "retrained"  # the models that methods are compared with
RANKS = ("hardest", "median", "easiest")
COLUMNS, PANEL_HEIGHT = 8, 0.66
N_BINS = 18
CUT = 0.01  # share of the models that may be beyond the axis on either side
RETRAINED_LOOK = {"color": "0.55", "alpha": 0.55, "linewidth": 0}
AXIS = "logit-scaled confidence, log(p / (1 − p))"
SHARE = "share of the models"
PREFERRED = "fanchuan"  # the method of the paper's figure
SPLITS, SAMPLES, HALVES_HEIGHT = 2, 4, 2.4


@style.styled
def unlearning_histograms(confidences: pd.DataFrame, hardness: pd.DataFrame) -> Figure:
    """Histograms of the confidence of unlearned and of retrained models in some forget strings.

    Parameters
    ----------
    confidences : tables `unlearning_confidences` of one language
    hardness : tables `unlearning_hardness` of the same, for how hard a string is to forget

    Source: Are we making progress in unlearning?, appendix A.12, figure 18.
    """
    methods = shared.with_ends(
        [name for name in shared.methods_in(confidences["method"]) if name != RETRAINED],
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
    figure = shared.titled("Confidence in single strings", shown, 0.85 + sum(heights.values()))
    inner = curves.panels_in(figure)
    tints = by_seed.shades(seeds)
    for model, part in shared.of_models(inner, heights):
        draw_blocks(part, shown[shown["model"] == model], rows[model], blocks, tints)
    handles = [
        curves.bar_handle("unlearned models", by_seed.COLOUR, 0.75),
        curves.bar_handle("retrained models", "0.55", 0.55),
    ]
    note = (
        "A row per string: those with the largest, the median and the smallest sum of epsilon over "
        "the methods. p: geometric mean of the token probabilities, or as the configuration says. "
        "Models beyond an axis are in its outermost bars."
    )
    if len(every) > len(seeds):
        note += f" Seed {seeds[0]} only; the table has all seeds."
    curves.legend(figure, handles, note)
    return figure


def strings_of(
    confidences: pd.DataFrame, hardness: pd.DataFrame, model: str
) -> list[tuple[int, str, str]]:
    """The strings of a model: seed, string and how hard it is; the hardest of each seed first."""
    there = confidences.loc[confidences["model"] == model, ["seed", "string_id"]].drop_duplicates()
    known = there.merge(hardness[hardness["model"] == model], on=["seed", "string_id"])
    known = known.sort_values(["seed", "epsilon_sum"], ascending=[True, False], kind="stable")
    found = []
    for seed, strings in known.groupby("seed"):
        names = ranks(len(strings))
        found += [
            (seed, name, rank) for name, rank in zip(strings["string_id"], names, strict=True)
        ]
    return found


def ranks(n: int) -> Sequence[str]:
    """The names of `n` strings that are sorted by hardness."""
    return RANKS if n == len(RANKS) else [f"rank {place}" for place in range(1, n + 1)]


def draw_blocks(
    figure: SubFigure,
    confidences: pd.DataFrame,
    strings: list[tuple[int, str, str]],
    blocks: list[list[str]],
    tints: dict,
) -> None:
    """Rows of strings and columns of methods; further methods are in a further block of rows."""
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
    figure.supxlabel(AXIS, fontsize=8)
    figure.supylabel(SHARE, fontsize=8)


def draw_row(panels: Sequence[Axes], of_string: pd.DataFrame, methods: list[str], colour) -> None:
    """One string: a panel per method, all with the same bins."""
    by_method = {name: rows["confidence"].to_numpy() for name, rows in of_string.groupby("method")}
    edges = bins(list(by_method.values()))
    for axes, method in zip(panels, methods, strict=False):
        draw_pair(axes, by_method.get(method, np.array([])), by_method[RETRAINED], edges, colour)
    for axes in panels[len(methods) :]:
        axes.remove()
    panels[0].xaxis.set_major_locator(MaxNLocator(2))


def bins(samples: list[np.ndarray]) -> np.ndarray:
    """Edges of bins over nearly all values; each sample's share beyond is small."""
    lowest = min(np.quantile(sample, CUT) for sample in samples)
    highest = max(np.quantile(sample, 1 - CUT) for sample in samples)
    room = max(0.02 * (highest - lowest), 1e-3)
    return np.linspace(lowest - room, highest + room, N_BINS + 1)


def draw_pair(
    axes: Axes, unlearned: np.ndarray, retrained: np.ndarray, edges: np.ndarray, colour
) -> None:
    """The histograms of unlearned and of retrained models, each as shares of its models."""
    for sample, look in ((retrained, RETRAINED_LOOK), (unlearned, {"color": colour, "alpha": 0.75,
                                                                   "linewidth": 0})):  # fmt: skip
        if len(sample):
            counts, _ = np.histogram(np.clip(sample, edges[0], edges[-1]), edges)
            axes.stairs(counts / len(sample), edges, fill=True, **look)
    axes.grid(visible=False)
    axes.tick_params(labelsize=5.5, length=2, pad=1)
    axes.yaxis.set_major_locator(MaxNLocator(2))


# Fresh models and bootstrap samples


@style.styled
def unlearning_bootstrap(confidences: pd.DataFrame, hardness: pd.DataFrame) -> Figure:
    """Fresh halves of the models against bootstrap samples of one half, for one string and method.

    Parameters
    ----------
    confidences : tables `unlearning_confidences` of one language
    hardness : tables `unlearning_hardness` of the same, which names the median string

    Source: Are we making progress in unlearning?, appendix A.15, figure 22.
    """
    models = list(confidences["model"].unique())
    heights = dict.fromkeys(models, HALVES_HEIGHT)
    names = [name for name in shared.methods_in(confidences["method"]) if name != RETRAINED]
    method = PREFERRED if PREFERRED in names else (names or list(shared.ENDS))[0]
    seed = by_seed.seeds_in(confidences)[0]
    figure = shared.titled(
        f"Fresh models and bootstrap samples, {method}", confidences[confidences["seed"] == seed],
        0.75 + sum(heights.values()),
    )  # fmt: skip
    inner = curves.panels_in(figure)
    n_models = 0
    for model, part in shared.of_models(inner, heights):
        strings = [place for place in strings_of(confidences, hardness, model) if place[0] == seed]
        string_id = strings[(len(strings) - 1) // 2][1]
        found = confidences[
            (confidences["model"] == model)
            & (confidences["seed"] == seed)
            & (confidences["string_id"] == string_id)
        ]
        n_models = draw_samples(part, found, method)
    handles = [
        curves.bar_handle(f"unlearned models ({method})", by_seed.COLOUR, 0.75),
        curves.bar_handle("retrained models", "0.55", 0.55),
    ]
    note = (
        f"Seed {seed}, the string of median hardness; {n_models} models of each kind in each "
        f"panel. Top: the two halves of all models, for {SPLITS} random splits. Bottom: samples "
        "with replacement from the half at the upper left. If the rows differ as little as the "
        "panels within a row, the bootstrap can stand in for fresh models."
    )
    curves.legend(figure, handles, note)
    return figure


def draw_samples(figure: SubFigure, found: pd.DataFrame, method: str) -> int:
    """Fresh halves in the first row, bootstrap samples in the second; returns models per panel."""
    unlearned, retrained = (
        found.loc[found["method"] == name, "confidence"].to_numpy() for name in (method, RETRAINED)
    )
    edges = bins([unlearned, retrained])
    grid = figure.subplots(2, SAMPLES, sharex=True, sharey=True)
    fresh = [
        pair
        for split in range(SPLITS)
        for pair in zip(halves(unlearned, split), halves(retrained, split), strict=True)
    ]
    chance = np.random.default_rng(SPLITS)
    again = [tuple(chance.choice(half, len(half)) for half in fresh[0]) for _ in range(SAMPLES)]
    for panels, pairs, name in zip(grid, (fresh, again), ("fresh half", "bootstrap"), strict=True):
        for place, (axes, pair) in enumerate(zip(panels, pairs, strict=True)):
            draw_pair(axes, *pair, edges, by_seed.COLOUR)
            title = f"split {place // 2 + 1}, half {place % 2 + 1}" if name == "fresh half" else (
                f"bootstrap sample {place + 1}")  # fmt: skip
            axes.set_title(title, fontsize=7, pad=2)
    figure.supxlabel(AXIS, fontsize=8)
    figure.supylabel(SHARE, fontsize=8)
    return len(fresh[0][0])


def halves(sample: np.ndarray, split: int) -> list[np.ndarray]:
    """Two disjoint random halves of a sample, equally large."""
    order = np.random.default_rng(split).permutation(len(sample))
    middle = math.floor(len(sample) / 2)
    return [sample[order[:middle]], sample[order[middle : 2 * middle]]]
