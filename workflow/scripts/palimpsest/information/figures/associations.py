"""Correlations of the measures with accuracy, with memorised strings and with norms of weights."""

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palimpsest.figures import curves, style
from palimpsest.information.figures import looks
from palimpsest.information.trends import (
    ACCURACY,
    ENTROPY,
    GREEK,
    INFORMATION,
    MEMORISED,
    PLACEBOS,
    SHARE,
    associated,
    fisher,
    kendall,
)
from palimpsest.statistics import student

OTHERS = {
    ACCURACY: "accuracy",
    MEMORISED: "memorised\nstrings",
    "two_norm": "2-norm of\nweights",
    "frobenius": "Frobenius norm\nof weights",
}
# Name, function, and what turns means of the function into correlations
ASSOCIATIONS = (
    ("Pearson's correlation", fisher, np.tanh),
    ("Kendall's tau", kendall, lambda ends: np.clip(ends, -1, 1)),
)
OFFSETS = {ENTROPY: -0.27, INFORMATION: -0.09, PLACEBOS[INFORMATION][0]: 0.09, SHARE: 0.27}
LOOKS = {
    ENTROPY: {"color": looks.MEASURES[ENTROPY].colour, "marker": "o"},
    INFORMATION: {"color": looks.MEASURES[INFORMATION].colour, "marker": "D"},
    PLACEBOS[INFORMATION][0]: {"color": looks.PLACEBO, "marker": "D", "markerfacecolor": "white"},
    SHARE: {"color": style.INK, "marker": "|", "markersize": 7},
}
STRONG = {"color": "0.8", "linewidth": 0.8, "linestyle": (0, (1, 1.6)), "zorder": 1}


@style.styled
def information_associations(table: pd.DataFrame) -> Figure:
    """Correlations over the runs of each seed, from tables `information` of one language.

    Source: the paper's tables 4 and 6.
    """
    interventions = looks.interventions_in(table)
    height = 2.35 * len(interventions) + 1.3
    figure = curves.figure_of(height, f"What the measures go with: {curves.subject(table)}")
    inner = curves.panels_in(figure)
    grid = inner.subplots(len(interventions), len(ASSOCIATIONS), sharey=True, squeeze=False)
    for line, intervention in zip(grid, interventions, strict=True):
        for axes, (name, *association) in zip(line, ASSOCIATIONS, strict=True):
            draw_panel(axes, table, intervention, *association)
            axes.set_title(f"{name}, models with different {GREEK[intervention]}")
            axes.set_xlabel("correlation (−1 to 1)")
    note = (
        f"{looks.site_note(looks.shown(table))} {looks.seeds_note(table)} A correlation is over "
        "the models of one seed. Pearson's: means by Fisher's transformation. Dotted: 0.5, −0.5. "
        "No point: one of the two does not vary, or accuracies have fewer than three levels."
    )
    handles = [
        *(
            looks.marker_handle(look.label, look.colour, looks.MEASURE_MARKERS[name])
            for name, look in looks.MEASURES.items()
        ),
        looks.marker_handle(
            "mutual information, exchanged strings (placebo)", looks.PLACEBO, "D", filled=False
        ),
        looks.marker_handle("alpha or beta itself", style.INK, "|", size=7),
    ]
    curves.legend(figure, handles, note)
    return figure


def draw_panel(
    axes: Axes, table: pd.DataFrame, intervention: str, association: Callable, back: Callable
) -> None:
    """A row for each other quantity, with a point for each measure and what it is compared with."""
    axes.axvline(0, **looks.ZERO)
    for bound in (-0.5, 0.5):
        axes.axvline(bound, **STRONG)
    for place, other in enumerate(OTHERS):
        for column, offset in OFFSETS.items():
            values = associated(table, intervention, association, column, other).mean(axis=1)
            if values.notna().any():
                found = back(student(values.dropna()))
                looks.draw_mean(axes, place + offset, found, **LOOKS[column])
    axes.set_yticks(range(len(OTHERS)), list(OTHERS.values()))
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(OTHERS) - 0.5, -0.5)
    axes.grid(False, axis="y")
    for place in range(1, len(OTHERS)):
        axes.axhline(place - 0.5, color="0.92", linewidth=0.6, zorder=0)
    axes.set_xlim(-1.08, 1.08)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["−1", "", "0", "", "1"])
