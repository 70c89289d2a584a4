"""Are frequent strings memorised more than infrequent ones?"""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.memorisation.paper import PAPER
from palimpsest.memorisation.studies.frequency import KIND

FIGURE = Figure(
    __name__,
    order=60,
    chapter="frequency",
    title="Frequent and infrequent strings",
    caption=(
        "Training loss and memorisation of the most frequent (solid) and the least frequent "
        "(dashed) training strings. Where the two separate before the dotted lines, frequency "
        "decides what is memorised."
    ),
    numbers="4, 21 and 22",
    paper=PAPER,
    tables=(KIND,),
)
COLUMNS = 3
GROUPS = {"top": "most frequent strings", "bottom": "least frequent strings"}
BINARY = ("recollection", "recollection_accuracy")  # the mean score is the fraction itself


@style.styled
def frequency(study: pd.DataFrame) -> plt.Figure:
    """Loss of the most and the least frequent strings, then a panel per measure.

    Source: section 4, RQ4, figures 4, 21 and 22.
    """
    measures = style.measures_in(study["measure"])
    rows = -(-(1 + len(measures)) // COLUMNS)
    figure = elements.figure_of(2.05 * rows + 0.9, "Frequent and infrequent strings", study)
    panels = figure.subplots(rows, COLUMNS, sharex=True, squeeze=False).ravel()
    draw_losses(panels[0], study)
    for axes, measure in zip(panels[1:], measures, strict=False):
        draw_measure(axes, study, measure)
    for axes in panels[: 1 + len(measures)]:
        elements.mark_optima(axes, study)
        axes.xaxis.set_tick_params(labelbottom=True)
        axes.set_xlabel("epoch")
    for axes in panels[1 + len(measures) :]:
        axes.remove()
    elements.legend(figure, legend_handles(study), elements.spread_note(study))
    return figure


def draw_losses(axes: plt.Axes, study: pd.DataFrame) -> None:
    runs = study.drop_duplicates(["model", "seed", "group", "epoch"])
    for group in GROUPS:
        curve = elements.spread(runs[runs["group"] == group], "epoch", "loss")
        elements.draw_spread(axes, curve, style.INK, linestyle=style.LINES[group])
    elements.scale_losses(axes, runs[["loss"]])
    axes.set_ylabel(elements.LOSS)
    axes.set_title("training loss", weight="bold")


def draw_measure(axes: plt.Axes, study: pd.DataFrame, measure: str) -> None:
    look = style.MEASURES[measure]
    rows = study[study["measure"] == measure]
    for group in GROUPS:
        of_group = rows[rows["group"] == group]
        memorised = elements.spread(of_group, "epoch", "share_memorised_distinct")
        elements.draw_spread(axes, memorised, look.colour, linestyle=style.LINES[group])
        if measure not in BINARY:
            score = elements.spread(of_group, "epoch", "mean_score_distinct")
            axes.plot(score.index, score["mean"], color=style.tinted(look.colour, 0.6),
                      linewidth=0.9, linestyle=style.LINES[group])  # fmt: skip
    elements.share_axis(axes)
    axes.set_ylabel("share memorised (0 to 1)")
    elements.name_panel(axes, measure)


def legend_handles(study: pd.DataFrame) -> list:
    groups = [
        elements.line_handle(f"{label} ({counted(study, group)})", linestyle=style.LINES[group])
        for group, label in GROUPS.items()
    ]
    return [
        *groups,
        elements.line_handle("optimal learning (lowest test loss)", **style.EPOCH_LINE),
        elements.line_handle("saturated: fraction of the strings memorised"),
        elements.line_handle(
            "pale, thin: their mean score, if it differs from the fraction", "0.6", linewidth=0.9
        ),
    ]


def counted(study: pd.DataFrame, group: str) -> str:
    n_strings = study.loc[study["group"] == group, "n_strings"]
    return "none" if n_strings.empty else elements.range_in_words(n_strings)
