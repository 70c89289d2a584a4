"""Curves of losses over the stages of unlearning."""

from __future__ import annotations

from palimpsest.figures.libraries import pd, plt
from palimpsest.unlearning.figures import seeds as by_seed

UNLEARNING, ROUNDED, RELEARNING = "unlearning", "4-bit", "relearning"  # the stages
GAP = {"color": by_seed.COLOUR, "linewidth": 1.4}
SEED_LINE = {"linewidth": 0.5, "alpha": 0.45}


def draw_means(axes: plt.Axes, found: pd.DataFrame, x: str, value: str, look: dict) -> None:
    found = found.dropna(subset=[value])
    by = {seed: group.groupby(x)[value].mean() for seed, group in found.groupby("seed")}
    if not by:
        return
    if len(by) > 1:
        for curve in by.values():
            axes.plot(curve.index, curve, **{**look, **SEED_LINE})
    mean = by_seed.mean_curve(by)
    axes.plot(mean.index, mean, **look)
