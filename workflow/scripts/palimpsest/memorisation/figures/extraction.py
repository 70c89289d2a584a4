"""The figure of the study `extraction`: the probability of a string within k samples."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.memorisation.studies.extraction import KIND

FIGURE = Figure(
    __name__,
    order=120,
    chapter="extraction",
    title="Extraction within k samples",
    caption=(
        "The probability that a training string (solid) or an unseen one (dashed) is among k "
        "samples of a model (black), of the language (grey) or of a model trained without it "
        "(dotted). Compare how far black is above grey in the two pairs."
    ),
    tables=(KIND,),
)
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
def extraction(study: pd.DataFrame) -> plt.Figure:
    """Extraction against the number of samples: a row per model, a column per moment.

    Source: arXiv 2410.19482; the comparison with the language is Palimpsest's own.
    """
    models = list(study["model"].unique())
    figure = elements.figure_of(2.0 * len(models) + 1.3, "Extraction within k samples", study)
    inner = elements.panels_in(figure)
    grid = inner.subplots(len(models), len(MOMENTS), sharex=True, sharey=True, squeeze=False)
    for row, model in zip(grid, models, strict=True):
        for axes, (moment, name) in zip(row, MOMENTS.items(), strict=True):
            runs = study[(study["model"] == model) & (study["moment"] == moment)]
            draw_curves(axes, runs)
            axes.set_title(
                f"{model}\n{name} (epoch {elements.range_in_words(runs['epoch'])})", weight="bold"
            )
    grid[0, 0].set_xscale("log")
    elements.share_axis(grid[0, 0])
    inner.supxlabel("samples k of whole strings (logarithmic scale)")
    inner.supylabel("probability within k samples (0 to 1)")
    shown = set(zip(study["group"], study["source"], strict=True))
    handles = [
        elements.line_handle(label, colour, linestyle=style.LINES[line])
        for key, (label, colour, line) in CURVES.items()
        if key in shown
    ]
    elements.legend(figure, handles[::-1], seeds_note(study))
    return figure


def draw_curves(axes: plt.Axes, runs: pd.DataFrame) -> None:
    for (group, source), (_, colour, line) in CURVES.items():
        rows = runs[(runs["group"] == group) & (runs["source"] == source)]
        if len(rows):
            curve = elements.spread(rows, "samples", "probability")
            elements.draw_spread(axes, curve, colour, linestyle=style.LINES[line])


def seeds_note(study: pd.DataFrame) -> str:
    seeds = study["seed"].nunique()
    if seeds == 1:
        return "One seed: lines without a band."
    note = f"Lines: mean over {seeds} seeds; bands: smallest to largest value of a seed."
    retrained = study.loc[study["source"] == "retraining", "seed"].nunique()
    if 0 < retrained < seeds:
        note += f" Seeds trained without each string: {retrained}."
    return note
