"""The figure of the study `tradeoff`: memorisation and learning over the epochs."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.memorisation.paper import PAPER
from palimpsest.memorisation.studies.tradeoff import KIND

FIGURE = Figure(
    __name__,
    order=50,
    chapter="tradeoff",
    title="Memorisation against learning",
    caption=(
        "Above, the share of training strings that is memorised, the losses and the bands of "
        "starts; below, test loss and weighted memorisation (the mean score) at optimal learning. "
        "Compare the two thin curves of a colour there: training strings (solid) and strings never "
        "trained on (dashed) below the threshold."
    ),
    numbers="3, 18 to 20 and 23 to 30",
    paper=PAPER,
    tables=(KIND,),
)
UPPER_HEIGHT, LOWER_HEIGHT = 5.0, 2.7  # inches
# Below the threshold at this epoch, whatever happens later: the headline compares these
BELOW_LINES = {
    "below_distinct": {"linestyle": "-", "linewidth": 0.7},
    "below_unseen": {"linestyle": (0, (3, 1)), "linewidth": 0.7},
}
BAND_OF = "contextual"  # the measure whose band of starts is shaded


@style.styled
def tradeoff(study: pd.DataFrame) -> plt.Figure:
    """Memorisation of the training set and losses by epoch, then both at optimal learning.

    Source: section 4, RQ3, figures 3, 18 to 20 and 23 to 30.
    """
    measures = style.measures_in(study["measure"])
    models = list(study["model"].unique())
    figure = elements.figure_of(
        UPPER_HEIGHT + LOWER_HEIGHT + 0.055 * len(models), "Memorising while learning", study
    )
    upper, lower = figure.subfigures(
        2, 1, height_ratios=[UPPER_HEIGHT, LOWER_HEIGHT + 0.055 * len(models)]
    )
    draw_epochs(upper, study, measures)
    draw_optima(lower, study, measures, models)
    return figure


def draw_epochs(figure: plt.Figure, study: pd.DataFrame, measures: list[str]) -> None:
    (memorised, scores), (losses, bands) = figure.subplots(2, 2, sharex=True)
    draw_memorised(
        memorised, study, measures, "share_memorised", "fraction of strings\nmemorised (0 to 1)"
    )
    draw_below(memorised, study, measures)
    draw_memorised(scores, study, measures, "mean_score", "weighted memorisation\n(0 to 1)")
    draw_losses(losses, study)
    draw_bands(bands, study, measures)
    shade_band(losses, study)
    for axes in (memorised, scores, losses, bands):
        elements.mark_optima(axes, study)
    for axes in (losses, bands):
        axes.set_xlabel("epoch")
    handles = [
        *elements.measure_handles(measures),
        elements.line_handle("below the threshold now", **BELOW_LINES["below_distinct"]),
        elements.line_handle("the same, never trained on", **BELOW_LINES["below_unseen"]),
        elements.line_handle("training loss", linestyle=style.LINES["train"]),
        elements.line_handle("test loss", linestyle=style.LINES["test"]),
        elements.bayes_handle(),
        elements.line_handle("optimal learning, each model", **style.EPOCH_LINE),
        elements.bar_handle("band of contextual starts", style.MEASURES[BAND_OF].colour, 0.12),
    ]
    note = (
        f"{elements.spread_note(study)} Bars: from the first start of a string to the last, mean "
        "over the runs; thin lines: from the earliest to the latest start in any run."
    )
    elements.legend(figure, handles, note)


def draw_memorised(
    axes: plt.Axes, study: pd.DataFrame, measures: list[str], column: str, label: str
) -> None:
    for measure in measures:
        curve = elements.spread(study[study["measure"] == measure], "epoch", column)
        elements.draw_spread(axes, curve, style.MEASURES[measure].colour)
    elements.share_axis(axes)
    axes.set_ylabel(label)


def draw_below(axes: plt.Axes, study: pd.DataFrame, measures: list[str]) -> None:
    """Distinct training strings, and strings never trained on, below the threshold."""
    for measure in measures:
        own, colour = study[study["measure"] == measure], style.MEASURES[measure].colour
        for column, line in BELOW_LINES.items():
            curve = elements.spread(own, "epoch", column)
            axes.plot(curve.index, curve["mean"], color=colour, **line)


def draw_losses(axes: plt.Axes, study: pd.DataFrame) -> None:
    runs = study.drop_duplicates(["model", "seed", "epoch"])
    axes.axhline(runs["optimal_test_loss"].mean(), **style.BAYES_LINE)
    for column, line in (("train_loss", "train"), ("test_loss", "test")):
        curve = elements.spread(runs, "epoch", column)
        elements.draw_spread(axes, curve, style.INK, linestyle=style.LINES[line])
    elements.scale_losses(axes, runs[["train_loss", "test_loss", "optimal_test_loss"]])
    axes.set_ylabel(elements.LOSS)


def shade_band(axes: plt.Axes, study: pd.DataFrame) -> None:
    band = study[study["measure"] == BAND_OF][["band_first", "band_last"]].mean()
    if band.notna().all():
        colour = style.MEASURES[BAND_OF].colour
        axes.axvspan(*band, color=colour, alpha=0.12, linewidth=0, zorder=0)


def draw_bands(axes: plt.Axes, study: pd.DataFrame, measures: list[str]) -> None:
    for level, measure in enumerate(measures):
        look = style.MEASURES[measure]
        band = study[study["measure"] == measure][["band_first", "band_last"]].dropna()
        if band.empty:
            axes.text(0.02 * study["epoch"].max(), level, "no string starts", va="center",
                      fontsize=7, color=style.darkened(look.colour))  # fmt: skip
            continue
        first, last = band.mean()
        axes.hlines(level, band["band_first"].min(), band["band_last"].max(), look.colour, lw=0.9)
        # A band of one epoch has no width: its ends keep it visible.
        axes.barh(level, last - first, left=first, height=0.5, color=look.colour,
                  edgecolor=look.colour, linewidth=1.2, alpha=0.8)  # fmt: skip
    axes.use_sticky_edges = False  # a bar from epoch 0 would pull the axis up to itself
    axes.set_ylim(len(measures) - 0.4, -0.6)
    axes.set_yticks(range(len(measures)), [])
    axes.set_ylabel("bands of starts\n(a bar per measure)")
    axes.grid(axis="y", visible=False)


def draw_optima(
    figure: plt.Figure, study: pd.DataFrame, measures: list[str], models: list[str]
) -> None:
    optimum = study[study["epoch"] == study["optimal_epoch"]]
    inner = elements.panels_in(figure)
    panels = inner.subplots(1, len(measures), sharex=True, squeeze=False)[0]
    for axes, measure in zip(panels, measures, strict=True):
        look = style.MEASURES[measure]
        axes.axvline(study["optimal_test_loss"].mean(), **style.BAYES_LINE)
        for model, runs in optimum[optimum["measure"] == measure].groupby("model", sort=False):
            marker = elements.model_marker(model, models, look.colour)
            elements.draw_runs(
                axes,
                runs["test_loss"],
                runs["mean_score"],
                linestyle="none",
                ecolor=look.colour,
                **marker,
            )
        elements.name_panel(axes, measure)
        axes.margins(x=0.15, y=0.25)
        axes.set_ylim(bottom=0)
    inner.supylabel("weighted memorisation (0 to 1)\nat optimal learning,\neach on its own scale")
    inner.supxlabel(f"{elements.TEST_LOSS} at optimal learning; grey: Bayes-optimal")
    elements.legend(figure, elements.model_handles(models), elements.error_note(study))
