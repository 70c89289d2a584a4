"""The figure of the study `extraction`: the probability of a string within k samples."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palimpsest.figures import curves, style

MOMENTS = {"optimum": "optimal learning", "end": "last epoch"}
LANGUAGE_COLOUR = style.BAYES_LINE["color"]
# Of each curve: its group and source, its label, its colour and its line
CURVES = {
    ("train", "language"): ("training strings: language", LANGUAGE_COLOUR, "train"),
    ("unseen", "language"): ("strings never trained on: language", LANGUAGE_COLOUR, "test"),
    ("unseen", "model"): ("strings never trained on: model", style.INK, "test"),
    ("train", "retraining"): (
        "training strings: model trained without the string",
        style.INK,
        "without",
    ),
    ("train", "model"): ("training strings: model", style.INK, "train"),
}


@style.styled
def extraction(study: pd.DataFrame) -> Figure:
    """Extraction against the number of samples: a row per model, a column per moment.

    Parameters
    ----------
    study : table `extraction` of one language

    Source: arXiv 2410.19482; the comparison with the language is Palimpsest's own.
    """
    models = list(study["model"].unique())
    figure = curves.figure_of(
        2.0 * len(models) + 1.3, f"Extraction within k samples: {curves.subject(study)}"
    )
    inner = curves.panels_in(figure)
    grid = inner.subplots(len(models), len(MOMENTS), sharex=True, sharey=True, squeeze=False)
    for row, model in zip(grid, models, strict=True):
        for axes, (moment, name) in zip(row, MOMENTS.items(), strict=True):
            runs = study[(study["model"] == model) & (study["moment"] == moment)]
            draw_curves(axes, runs)
            axes.set_title(f"{model}\n{name} (epoch {epochs_in_words(runs)})", weight="bold")
    grid[0, 0].set_xscale("log")
    curves.share_axis(grid[0, 0])
    inner.supxlabel("samples k of whole strings (logarithmic scale)", fontsize=8)
    inner.supylabel("probability within k samples (0 to 1)", fontsize=8)
    shown = set(zip(study["group"], study["source"], strict=True))
    handles = [
        curves.line_handle(label, colour, linestyle=style.LINES[line])
        for key, (label, colour, line) in CURVES.items()
        if key in shown
    ]
    curves.legend(figure, handles[::-1], seeds_note(study))
    return figure


def draw_curves(axes: Axes, runs: pd.DataFrame) -> None:
    """Every group and source of one model at one moment: the mean over the seeds, with a band."""
    for (group, source), (_, colour, line) in CURVES.items():
        rows = runs[(runs["group"] == group) & (runs["source"] == source)]
        if len(rows):
            curve = curves.spread(rows, "samples", "probability")
            curves.draw_spread(axes, curve, colour, linestyle=style.LINES[line])


def epochs_in_words(runs: pd.DataFrame) -> str:
    """The epoch of the seeds: one number, or the range."""
    low, high = runs["epoch"].min(), runs["epoch"].max()
    return f"{low}" if low == high else f"{low} to {high}"


def seeds_note(study: pd.DataFrame) -> str:
    """One sentence on lines and bands, and one on retraining if it has fewer seeds."""
    seeds = study["seed"].nunique()
    if seeds == 1:
        return "One seed: lines without a band."
    note = f"Lines: mean over {seeds} seeds; bands: smallest to largest value of a seed."
    retrained = study.loc[study["source"] == "retraining", "seed"].nunique()
    if 0 < retrained < seeds:
        note += f" Seeds trained without each string: {retrained}."
    return note
