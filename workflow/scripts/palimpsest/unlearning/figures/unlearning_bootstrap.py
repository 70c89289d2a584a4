"""Confidences of fresh models and of bootstrap samples."""

from __future__ import annotations

import math

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
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
    order=140,
    chapter="unlearning",
    title="Fresh models and bootstrap samples",
    caption=(
        "The confidence of unlearned and of retrained models in one forget string: in halves "
        "of all models (top), and in samples with replacement from one half (bottom). If the "
        "rows differ no more than the histograms within a row, the bootstrap can stand in for "
        "fresh models."
    ),
    numbers="22",
    paper=PAPER,
    tables=(kinds.CONFIDENCES, kinds.HARDNESS),
)
PREFERRED = "fanchuan"  # the method of the paper's figure
SPLITS, SAMPLES, HALVES_HEIGHT = 2, 4, 2.4


@style.styled
def unlearning_bootstrap(confidences: pd.DataFrame, hardness: pd.DataFrame) -> plt.Figure:
    """Fresh halves of the models against bootstrap samples of one half, for one string and method.

    Parameters
    ----------
    confidences : tables `unlearning_confidences` of one language
    hardness : tables `unlearning_hardness` of the same, which names the median string

    Source: Are we making progress in unlearning?, appendix A.15, figure 22.
    """
    models = list(confidences["model"].unique())
    heights = dict.fromkeys(models, HALVES_HEIGHT)
    names = [name for name in method_rows.methods_in(confidences["method"]) if name != RETRAINED]
    method = PREFERRED if PREFERRED in names else (names or list(method_rows.ENDS))[0]
    seed = by_seed.seeds_in(confidences)[0]
    title = f"Fresh models and bootstrap samples, {method}"
    of_seed = confidences[confidences["seed"] == seed]
    figure, parts = method_rows.figure_of_models(title, of_seed, heights, 0.75)
    n_models = 0
    for model, part in parts:
        strings = [place for place in strings_of(confidences, hardness, model) if place[0] == seed]
        string_id = strings[(len(strings) - 1) // 2][1]
        found = of_seed[(of_seed["model"] == model) & (of_seed["string_id"] == string_id)]
        n_models = draw_samples(part, found, method)
    handles = [
        elements.bar_handle(f"unlearned models ({method})", by_seed.COLOUR, 0.75),
        elements.bar_handle("retrained models", "0.55", 0.55),
    ]
    note = (
        f"Seed {seed}, the string of median hardness; {n_models} models of each kind in each "
        f"panel. Top: the two halves of all models, for {SPLITS} random splits. Bottom: samples "
        "with replacement from the half at the upper left. If the rows differ as little as the "
        "panels within a row, the bootstrap can stand in for fresh models."
    )
    elements.legend(figure, handles, note)
    return figure


def draw_samples(figure: plt.Figure, found: pd.DataFrame, method: str) -> int:
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
    figure.supxlabel(AXIS)
    figure.supylabel(SHARE)
    return len(fresh[0][0])


def halves(sample: np.ndarray, split: int) -> list[np.ndarray]:
    order = np.random.default_rng(split).permutation(len(sample))
    middle = math.floor(len(sample) / 2)
    return [sample[order[:middle]], sample[order[middle : 2 * middle]]]
