"""Are frequent strings memorised more than infrequent ones?"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palimpsest.figures import curves, style

COLUMNS = 3
GROUPS = {"top": "most frequent strings", "bottom": "least frequent strings"}
BINARY = ("recollection", "recollection_accuracy")  # the mean score is the fraction itself


@style.styled
def frequency(study: pd.DataFrame) -> Figure:
    """Loss of the most and the least frequent strings, then a panel per measure.

    Parameters
    ----------
    study : table `frequency` of one language

    Source: section 4, RQ4, figures 4, 21 and 22.
    """
    measures = style.measures_in(study["measure"])
    rows = -(-(1 + len(measures)) // COLUMNS)
    figure = curves.figure_of(
        2.05 * rows + 0.9, f"Frequent and infrequent strings: {curves.subject(study)}"
    )
    panels = figure.subplots(rows, COLUMNS, sharex=True, squeeze=False).ravel()
    draw_losses(panels[0], study)
    for axes, measure in zip(panels[1:], measures, strict=False):
        draw_measure(axes, study, measure)
    for axes in panels[: 1 + len(measures)]:
        curves.mark_optima(axes, study)
        axes.xaxis.set_tick_params(labelbottom=True)
        axes.set_xlabel("epoch")
    for axes in panels[1 + len(measures) :]:
        axes.remove()
    curves.legend(figure, legend_handles(study), curves.spread_note(study))
    return figure


def draw_losses(axes: Axes, study: pd.DataFrame) -> None:
    """The loss of each group."""
    runs = study.drop_duplicates(["model", "seed", "group", "epoch"])
    for group in GROUPS:
        curve = curves.spread(runs[runs["group"] == group], "epoch", "loss")
        curves.draw_spread(axes, curve, style.INK, linestyle=style.LINES[group])
    curves.scale_losses(axes, runs[["loss"]])
    axes.set_ylabel(curves.LOSS)
    axes.set_title("training loss", weight="bold")


def draw_measure(axes: Axes, study: pd.DataFrame, measure: str) -> None:
    """Fraction memorised and mean score of each group, under one measure."""
    look = style.MEASURES[measure]
    rows = study[study["measure"] == measure]
    for group in GROUPS:
        of_group = rows[rows["group"] == group]
        fraction = curves.spread(of_group, "epoch", "fraction_distinct")
        curves.draw_spread(axes, fraction, look.colour, linestyle=style.LINES[group])
        if measure not in BINARY:
            score = curves.spread(of_group, "epoch", "weighted_distinct")
            axes.plot(score.index, score["mean"], color=style.tinted(look.colour, 0.6),
                      linewidth=0.9, linestyle=style.LINES[group])  # fmt: skip
    curves.share_axis(axes)
    axes.set_ylabel("share memorised (0 to 1)")
    curves.name_panel(axes, measure)


def legend_handles(study: pd.DataFrame) -> list:
    """Entries for the groups, with their numbers of strings, and for the two shares."""
    groups = [
        curves.line_handle(f"{label} ({counted(study, group)})", linestyle=style.LINES[group])
        for group, label in GROUPS.items()
    ]
    return [
        *groups,
        curves.OPTIMUM_HANDLE,
        curves.line_handle("saturated: fraction of the strings memorised"),
        curves.line_handle(
            "pale, thin: their mean score, if it differs from the fraction", "0.6", linewidth=0.9
        ),
    ]


def counted(study: pd.DataFrame, group: str) -> str:
    """The number of strings in a group: one number, or the range over the runs."""
    n_strings = study.loc[study["group"] == group, "n_strings"]
    if n_strings.empty:
        return "none"
    low, high = n_strings.min(), n_strings.max()
    return f"{low}" if low == high else f"{low} to {high}"
