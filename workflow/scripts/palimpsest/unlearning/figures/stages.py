"""Figures of losses while methods run, while strings are learned again, and with 4-bit weights."""

import math
import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from palimpsest.figures import curves, style
from palimpsest.unlearning.figures import methods as shared
from palimpsest.unlearning.figures import seeds as by_seed

UNLEARNING, ROUNDED, RELEARNING = "unlearning", "4-bit", "relearning"  # the stages
COLUMNS, PANEL_HEIGHT = 4, 1.25
LEAST_GAP = 1e-6  # nats per token
GAP_LIMITS, RATIO_LIMITS = (-0.25, 2.75), (0.875, 2.375)  # so that both start at one height
GAP = {"color": by_seed.COLOUR, "linewidth": 1.4}
RATIOS = {
    "retain": {"color": "0.4", "linewidth": 1.1, "linestyle": "-"},
    "unseen": {"color": "0.4", "linewidth": 1.1, "linestyle": style.LINES["test"]},
}
RATIO_LABELS = {"retain": "retained strings", "unseen": "unseen strings"}
RELEARNING_ENDS = {
    "none": {"color": "0.45", "linewidth": 1.0, "linestyle": style.LINES["without"]},
    "retrain": {"color": style.INK, "linewidth": 1.0, "linestyle": style.LINES["test"]},
}
PHASE_LINE = {"color": "0.75", "linewidth": 0.6, "zorder": 0}
SEED_LINE = {"linewidth": 0.5, "alpha": 0.45}
RELEARN_COLUMNS, RELEARN_HEIGHT = 3, 1.15
CURVES_TITLE = "What happens while methods run"
RELEARNING_TITLE = "How fast what was forgotten comes back"


# While a method runs


@style.styled
def unlearning_curves(stages: pd.DataFrame) -> Figure:
    """The gap closed, and losses on other strings, after every few passes of each method.

    Parameters
    ----------
    stages : tables `unlearning_stages` of one language

    Source: the figure is Palimpsest's own.
    """
    found = progress(stages)
    if found.empty:
        return shared.without_panels(CURVES_TITLE, stages, "No model was measured while a method "
                                     "ran: set `unlearning/curve` and `unlearning/relearn`, which "
                                     "measure these models and the retrained ones.")  # fmt: skip
    names = {model: shared.methods_in(of["method"]) for model, of in found.groupby("model")}
    heights = {
        model: 0.4 + PANEL_HEIGHT * math.ceil(len(methods) / COLUMNS)
        for model, methods in names.items()
    }
    figure = shared.titled(CURVES_TITLE, stages, 0.9 + sum(heights.values()))
    inner = curves.panels_in(figure)
    for model, part in shared.of_models(inner, heights):
        draw_progress(part, found[found["model"] == model], names[model])
    handles = [
        Line2D([], [], label="gap closed (left axis)", **GAP),
        *(
            Line2D([], [], label=f"loss of {RATIO_LABELS[name]} (right axis)", **look)
            for name, look in RATIOS.items()
        ),
        shared.ideal_handle("retraining"),
        Line2D([], [], label="end of a phase", **PHASE_LINE),
    ]
    note = "Lines are cut where the axes end."
    seeds = by_seed.seeds_in(found)
    if len(seeds) > 1:
        note = f"Lines: mean over {len(seeds)} seeds; thin lines: the seeds. {note}"
    curves.legend(figure, handles, note)
    return figure


def progress(stages: pd.DataFrame) -> pd.DataFrame:
    """The gap closed and the ratios of losses of every method: a row per seed, passes and phase.

    The gap is that between the forget loss at the start and the forget loss of the retrained
    models. Problems whose retrained models were not measured have no rows.
    """
    keys = ["model", "method", "seed"]
    losses = [f"{name}_loss" for name in ("forget", *RATIOS)]
    of_retrained = stages[
        (stages["method"] == "retrain") & (stages["stage"] == RELEARNING) & (stages["passes"] == 0)
    ]
    goal = of_retrained.groupby(["model", "seed"])["forget_loss"].mean().rename("goal")
    running = stages[stages["stage"] == UNLEARNING]
    start = running[running["passes"] == 0].groupby(keys)[losses].mean().add_suffix("_start")
    means = running.groupby([*keys, "passes", "phase"], sort=False, dropna=False)[losses].mean()
    found = means.reset_index().join(start, on=keys).merge(goal.reset_index(), on=["model", "seed"])
    gap = found["goal"] - found["forget_loss_start"]
    found["gap"] = (found["forget_loss"] - found["forget_loss_start"]) / gap.mask(
        gap.abs() < LEAST_GAP
    )
    for name in RATIOS:
        found[name] = found[f"{name}_loss"] / found[f"{name}_loss_start"]
    return found[[*keys, "passes", "phase", "gap", *RATIOS]]


def draw_progress(figure: SubFigure, found: pd.DataFrame, methods: list[str]) -> None:
    """A panel per method, with one axis for the gap and another one for the losses."""
    panels = shared.grid_of(figure, len(methods), COLUMNS, sharex=True, sharey=True)
    n_columns = min(COLUMNS, len(methods))
    first = None
    for place, (axes, method) in enumerate(zip(panels, methods, strict=True)):
        other = axes.twinx()
        if first is None:
            first = other
        else:
            other.sharey(first)
        draw_method(axes, other, found[found["method"] == method])
        axes.set_title(method, fontsize=7)
        at_the_right = place % n_columns == n_columns - 1
        other.tick_params(axis="y", labelright=at_the_right, length=0)
        if at_the_right:
            other.set_ylabel("loss, relative\nto its start", fontsize=7)
    panels[0].set_ylim(*GAP_LIMITS)
    panels[0].set_yticks([0, 0.5, 1, 1.5], ["0", "0.5", "1", "1.5"])
    first.set_ylim(*RATIO_LIMITS)
    first.set_yticks([1, 1.25, 1.5, 1.75], ["1", "1.25", "1.5", "1.75"])
    panels[0].xaxis.set_major_locator(MaxNLocator(4, integer=True))
    figure.supxlabel("passes over batches (forward and backward)", fontsize=8)
    figure.supylabel("share of the gap closed", fontsize=8)


def draw_method(axes: Axes, other: Axes, found: pd.DataFrame) -> None:
    """The curves of one method: thin ones for its seeds, and their means."""
    axes.axhline(1, **shared.IDEAL_LINE)
    for panel, value, look in (
        *((other, name, look) for name, look in RATIOS.items()),
        (axes, "gap", GAP),
    ):
        draw_means(panel, found, "passes", value, look)
    ends = found.dropna(subset=["phase"]).groupby(["seed", "phase"])["passes"].max()
    for end in sorted(set(ends)):
        axes.axvline(end, **PHASE_LINE)
    other.spines["right"].set_visible(True)
    other.spines["right"].set_color("0.8")
    other.grid(visible=False)
    other.patch.set_visible(False)


def draw_means(axes: Axes, found: pd.DataFrame, x: str, value: str, look: dict) -> None:
    """The mean over the seeds of a curve; thin lines for the seeds if there are several."""
    found = found.dropna(subset=[value])
    by = {seed: group.groupby(x)[value].mean() for seed, group in found.groupby("seed")}
    if not by:
        return
    if len(by) > 1:
        for curve in by.values():
            axes.plot(curve.index, curve, **{**look, **SEED_LINE})
    mean = by_seed.mean_curve(by)
    axes.plot(mean.index, mean, **look)


# After a method


@style.styled
def unlearning_relearning(stages: pd.DataFrame) -> Figure:
    """Forget losses while the forget set is learned again, and with weights of 4 bits.

    Parameters
    ----------
    stages : tables `unlearning_stages` of one language

    Source: the figure is Palimpsest's own.
    """
    again, rounded = stages[stages["stage"] == RELEARNING], against_rounded(stages)
    if again.empty:
        return shared.without_panels(RELEARNING_TITLE, stages, "No model was trained on the forget "
                                     "set again: set `unlearning/relearn`.")  # fmt: skip
    names = {model: shared.methods_in(of["method"]) for model, of in again.groupby("model")}
    names = {model: methods or ["none"] for model, methods in names.items()}
    heights = {
        model: max(2.9, 0.45 + RELEARN_HEIGHT * math.ceil(len(methods) / RELEARN_COLUMNS))
        for model, methods in names.items()
    }
    figure = shared.titled(RELEARNING_TITLE, stages, 0.9 + sum(heights.values()))
    inner = curves.panels_in(figure)
    drawn = []
    for model, part in shared.of_models(inner, heights):
        of_model = rounded[rounded["model"] == model]
        left, right = part.subfigures(1, 2, width_ratios=[1.75, 1])
        draw_relearning(left, again[again["model"] == model], names[model])
        if not of_model.empty:
            drawn.append((*draw_rounded(right, of_model), names[model]))
    handles = [
        Line2D([], [], label="the method", **GAP),
        Line2D([], [], label="retrain (the ideal)", **RELEARNING_ENDS["retrain"]),
        Line2D([], [], label="none (the original), trained on", **RELEARNING_ENDS["none"]),
    ]  # fmt: skip
    note = (
        "Left: see whether a line falls like that of retraining, or like that of the original "
        "models, which never forgot; the first steps of training raise every loss. Right: numbers "
        "are those of the methods; above the diagonal, rounding raises the loss, and below, "
        "rounding brings strings back."
    )
    seeds = by_seed.seeds_in(stages)
    if len(seeds) > 1:
        note += f" Thick lines and large markers: mean over {len(seeds)} seeds; others: the seeds."
    curves.legend(figure, handles, note)
    return shared.after_layout(figure, lambda: number_all(drawn))


def against_rounded(stages: pd.DataFrame) -> pd.DataFrame:
    """Mean forget losses of every method and seed with full weights and with weights of 4 bits.

    Full weights: at 0 steps of relearning, or else at the end of unlearning.
    """
    keys = ["model", "method", "seed"]
    models = [*keys, "origin", "draw"]
    few = stages[stages["stage"] == ROUNDED].set_index(models)["forget_loss"].rename("rounded")
    relearned = stages[(stages["stage"] == RELEARNING) & (stages["passes"] == 0)]
    last = stages[stages["stage"] == UNLEARNING].sort_values("passes", kind="stable")
    full = pd.concat([last.drop_duplicates(models, keep="last"), relearned])
    full = full.drop_duplicates(models, keep="last").set_index(models)["forget_loss"].rename("full")
    both = few.to_frame().join(full, how="inner")
    return both.groupby(keys, sort=False).mean().reset_index()


def draw_relearning(figure: SubFigure, again: pd.DataFrame, methods: list[str]) -> None:
    """A panel per method, beside the curves of retraining and of the original models."""
    panels = shared.grid_of(figure, len(methods), RELEARN_COLUMNS, sharex=True, sharey=True)
    numbers = shared.numbered(shared.methods_in(methods))
    for axes, method in zip(panels, methods, strict=True):
        for end, look in RELEARNING_ENDS.items():
            draw_means(axes, again[again["method"] == end], "passes", "forget_loss", look)
        draw_means(axes, again[again["method"] == method], "passes", "forget_loss", GAP)
        name = f"{numbers.get(method, '')} {method}".strip()
        axes.set_title(textwrap.fill(name, 22), fontsize=7)
    panels[0].xaxis.set_major_locator(MaxNLocator(4, integer=True))
    figure.supxlabel("steps on the forget set", fontsize=8)
    figure.supylabel("loss of the forget strings\n(nats per token)", fontsize=8)


def draw_rounded(figure: SubFigure, rounded: pd.DataFrame) -> tuple[Axes, pd.DataFrame]:
    """Losses with 4-bit weights against those with full weights; returns the places of methods."""
    axes = figure.subplots()
    values = rounded[["full", "rounded"]].to_numpy()
    room = 0.06 * max(np.ptp(values), 0.01)
    ends = values.min() - room, values.max() + room
    axes.plot(ends, ends, **shared.IDEAL_LINE)
    several = rounded["seed"].nunique() > 1
    means = rounded.groupby("method", sort=False)[["full", "rounded"]].mean()
    for method, place in means.iterrows():
        colour = style.END if method in shared.ENDS else by_seed.COLOUR
        if several:
            of_method = rounded[rounded["method"] == method]
            axes.plot(
                of_method["full"], of_method["rounded"], linestyle="none", marker=".",
                markersize=3, color=colour, alpha=0.45, markeredgewidth=0,
            )  # fmt: skip
        axes.plot(*place, linestyle="none", marker="o", markersize=3.6, color=colour)
    axes.set(xlim=ends, ylim=ends, aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MaxNLocator(4))
    axes.set_xlabel("loss, full weights (nats per token)")
    axes.set_ylabel("loss, 4-bit weights (nats per token)")
    return axes, means


def number_all(drawn: list[tuple[Axes, pd.DataFrame, list[str]]]) -> None:
    """Numbers of methods, and names of the two ends, near their markers."""
    for axes, places, methods in drawn:
        shared.number_points(axes, shared.labelled(shared.methods_in(methods), places))
