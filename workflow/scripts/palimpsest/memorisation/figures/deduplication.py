"""Does removing repeated strings from the training data prevent memorisation?"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from palimpsest.figures import curves, style

# Variants differ both in line style and in strength of colour.
VARIANTS = {
    "base": ("as sampled (base)", 1.0),
    "dedup": ("deduplicated (dedup)", 0.75),
    "dedup-matched": ("high-entropy language (dedup-matched)", 0.5),
}
MEASURES = ("recollection", "contextual")
LOSSES = {
    "train_loss": ("training loss", curves.LOSS),
    "test_loss": ("test loss", curves.LOSS),
    "test_spread": (
        "spread of the test loss",
        "standard deviation over\ntest strings (nats per token)",
    ),
}
SPREAD_ALPHA = 0.22
PERFECT_SPREAD = {"color": "0.6", "linestyle": (0, (4, 2)), "linewidth": 0.9}
HEADROOM = 1.4  # for the text above the curves
OPTIMUM = {"marker": "D", "markersize": 4.5, "markeredgecolor": "white", "markeredgewidth": 0.6}


@style.styled
def deduplication(study: pd.DataFrame) -> Figure:
    """Learning and memorisation: with repeated strings, without them, and on the counterpart.

    Parameters
    ----------
    study : table `deduplication` of one language; dedup-matched may be absent

    Source: section 4, RQ4, figure 5; appendix G, figure 40.
    """
    variants = [variant for variant in VARIANTS if (study["variant"] == variant).any()]
    measures = [measure for measure in MEASURES if (study["measure"] == measure).any()]
    figure = curves.figure_of(5.0, f"Deduplicating the training strings: {curves.subject(study)}")
    upper, lower = figure.subplots(2, 3)
    for axes, column in zip(upper, LOSSES, strict=True):
        draw_loss(axes, study, variants, column)
    for axes in upper[:2]:
        curves.scale_losses(axes, study[["train_loss", "test_loss"]])
    for axes, measure in zip(lower, measures, strict=False):
        draw_fraction(axes, study, variants, measure)
    draw_bands(lower[2], study, variants, measures)
    for axes in lower[len(measures) : 2]:
        axes.remove()
    note = (
        f"{curves.spread_note(study)} Bars: epochs at which 10 % to 90 % of the distinct strings "
        "start, in the colour of the measure."
    )
    curves.legend(figure, legend_handles(variants), note)
    return figure


@style.styled
def deduplication_spread(study: pd.DataFrame) -> Figure:
    """The loss of the test strings, with its standard deviation over the strings.

    Parameters
    ----------
    study : table `deduplication` of one language; dedup-matched may be absent

    Source: appendix G, RQ8, figure 39; the perfect learner is our own.
    """
    variants = [variant for variant in VARIANTS if (study["variant"] == variant).any()]
    runs = study.drop_duplicates(["model", "seed", "variant", "epoch"])
    figure = curves.figure_of(3.4, f"Loss of the test strings: {curves.subject(study)}")
    panels = figure.subplots(1, len(variants), sharex=True, sharey=True, squeeze=False)[0]
    for axes, variant in zip(panels, variants, strict=True):
        draw_spread_of_strings(axes, runs[runs["variant"] == variant])
        axes.set_title(VARIANTS[variant][0].replace(" (", "\n("), weight="bold")
        axes.set_xlabel("epoch")
    # The first epochs are left out: an untrained model would set the scale.
    learned = runs[runs["epoch"] >= runs["optimal_epoch"]]
    panels[0].set_ylim(0, HEADROOM * (learned["test_loss_distinct"] + learned["test_spread"]).max())
    panels[0].set_ylabel("loss of the test strings\n(nats per token)")
    handles = [
        curves.line_handle("loss, mean over the strings"),
        curves.bar_handle("± one standard deviation over the strings", style.INK, SPREAD_ALPHA),
        Line2D([], [], label="perfect learner, mean over the strings", **style.BAYES_LINE),
        Line2D([], [], label="± one standard deviation over the strings", **PERFECT_SPREAD),
        curves.line_handle("optimal learning", **style.EPOCH_LINE),
    ]
    runs_in_words = "one run" if len(run_keys(runs)) == 1 else f"{len(run_keys(runs))} runs"
    curves.legend(figure, handles, f"Means and standard deviations: averaged over {runs_in_words}.")
    return figure


def run_keys(runs: pd.DataFrame) -> pd.DataFrame:
    """The models and seeds, each pair once."""
    return runs[["model", "seed"]].drop_duplicates()


def draw_spread_of_strings(axes: Axes, runs: pd.DataFrame) -> None:
    """The mean loss of the strings and one standard deviation around it, with the optimal loss."""
    mean = runs.groupby("epoch")[[
        "test_loss_distinct", "test_spread", "optimal_test_loss_distinct", "optimal_test_spread"
    ]].mean()  # fmt: skip
    optimum = runs["optimal_epoch"].mean()
    loss, spread, optimal, optimal_spread = mean.to_numpy().T
    axes.axhline(optimal[0], **style.BAYES_LINE)
    for side in (-1, 1):
        axes.axhline(optimal[0] + side * optimal_spread[0], **PERFECT_SPREAD)
    axes.fill_between(
        mean.index, loss - spread, loss + spread, color=style.INK, alpha=SPREAD_ALPHA, linewidth=0
    )
    axes.plot(mean.index, loss, color=style.INK)
    curves.mark_epoch(axes, optimum)
    found, perfect = np.interp(optimum, mean.index, spread), optimal_spread[0]
    axes.text(
        0.98, 0.97, f"standard deviation\nat optimal learning: {found:.3f}\n"
        f"perfect learner: {perfect:.3f}", transform=axes.transAxes, ha="right", va="top",
        fontsize=7, bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 1},
    )  # fmt: skip


def draw_loss(axes: Axes, study: pd.DataFrame, variants: list[str], column: str) -> None:
    """A curve per variant of a loss, which does not depend on a measure."""
    title, label = LOSSES[column]
    runs = study.drop_duplicates(["model", "seed", "variant", "epoch"])
    for variant in variants:
        draw_variant(axes, runs, variant, column, style.INK)
    axes.set_ylim(bottom=0)
    axes.set(xlabel="epoch", ylabel=label)
    axes.set_title(title, weight="bold")


def draw_fraction(axes: Axes, study: pd.DataFrame, variants: list[str], measure: str) -> None:
    """The fraction of the distinct strings memorised, a curve per variant."""
    look = style.MEASURES[measure]
    rows = study[study["measure"] == measure]
    for variant in variants:
        draw_variant(axes, rows, variant, "fraction_distinct", look.colour)
    curves.share_axis(axes)
    axes.set(xlabel="epoch", ylabel="fraction of distinct\nstrings memorised")
    curves.name_panel(axes, measure)


def draw_variant(axes: Axes, rows: pd.DataFrame, variant: str, column: str, colour: str) -> None:
    """The curve of a variant, with a diamond at optimal learning."""
    of_variant = rows[rows["variant"] == variant]
    curve = curves.spread(of_variant, "epoch", column)
    if curve.empty:
        return
    shade = style.tinted(colour, VARIANTS[variant][1])
    curves.draw_spread(axes, curve, shade, linestyle=style.LINES[variant])
    optimum = of_variant["optimal_epoch"].mean()
    axes.plot(optimum, np.interp(optimum, curve.index, curve["mean"]), color=shade, **OPTIMUM)


def draw_bands(axes: Axes, study: pd.DataFrame, variants: list[str], measures: list[str]) -> None:
    """The 10 % to 90 % band of starts of every measure and variant, averaged over the runs."""
    levels = [(measure, variant) for measure in measures for variant in variants]
    for level, (measure, variant) in enumerate(levels):
        rows = study[(study["measure"] == measure) & (study["variant"] == variant)]
        shade = style.tinted(style.MEASURES[measure].colour, VARIANTS[variant][1])
        band = rows[["start_p10", "start_p90"]].dropna()
        never = band["start_p10"] > study["epoch"].max()
        if len(band) and never.all():
            write_never(axes, level, rows["optimal_epoch"].mean(), study["epoch"].max(), measure)
        elif len(band):
            first, last = band.clip(upper=study["epoch"].max()).mean()
            axes.barh(level, last - first, left=first, height=0.55, color=shade,
                      edgecolor=shade, linewidth=1.2)  # fmt: skip
        axes.plot(rows["optimal_epoch"].mean(), level, color=style.INK, **OPTIMUM)
    axes.set_xlim(0, study["epoch"].max())
    axes.set_ylim(len(levels) - 0.4, -0.6)
    axes.set_yticks(range(len(levels)), [variant.removeprefix("dedup-") for _, variant in levels])
    axes.grid(axis="y", visible=False)
    axes.set(xlabel="epoch", ylabel="training set")
    axes.set_title("band of starts", weight="bold")


def write_never(axes: Axes, level: int, optimum: float, last: float, measure: str) -> None:
    """Words instead of a bar, on the side away from the diamond."""
    left = optimum > last / 2
    axes.text(
        0.02 * last if left else 0.98 * last, level, "never", fontsize=7, va="center",
        ha="left" if left else "right", color=style.darkened(style.MEASURES[measure].colour),
    )  # fmt: skip


def legend_handles(variants: list[str]) -> list:
    """Entries for the variants and the optimum."""
    lines = [
        curves.line_handle(
            VARIANTS[variant][0],
            style.tinted(style.INK, VARIANTS[variant][1]),
            linestyle=style.LINES[variant],
        )
        for variant in variants
    ]
    optimum = curves.line_handle("optimal learning (lowest test loss)", linestyle="none", **OPTIMUM)
    return [*lines, optimum]
