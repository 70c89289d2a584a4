"""Correlations of the measures with accuracy, with memorised strings and with norms of weights."""

from __future__ import annotations

from collections.abc import Callable

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.information import kinds
from palimpsest.information.figures import palette
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

FIGURE = Figure(
    __name__,
    order=40,
    chapter="comparison",
    title="What the measures go with",
    caption=(
        "Correlations of entropy and mutual information with accuracy, with the share of "
        "memorised strings and with norms, over the models of a seed. See whether filled "
        "points are far from 0, those of exchanged strings are not, and how near alpha or "
        "beta itself comes (bars)."
    ),
    tables=(kinds.INFORMATION,),
)
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
    ENTROPY: {"color": palette.MEASURES[ENTROPY].colour, "marker": "o"},
    INFORMATION: {"color": palette.MEASURES[INFORMATION].colour, "marker": "D"},
    PLACEBOS[INFORMATION][0]: {"color": palette.PLACEBO, "marker": "D", "markerfacecolor": "white"},
    SHARE: {"color": style.INK, "marker": "|", "markersize": 7},
}
STRONG = {"color": "0.8", "linewidth": 0.8, "linestyle": (0, (1, 1.6)), "zorder": 1}


@style.styled
def information_associations(table: pd.DataFrame) -> plt.Figure:
    """Correlations over the runs of each seed, from tables `information` of one language.

    Source: the paper's tables 4 and 6.
    """
    interventions = palette.interventions_in(table)
    height = 2.35 * len(interventions) + 1.3
    figure = elements.figure_of(height, "What the measures go with", table)
    inner = elements.panels_in(figure)
    grid = inner.subplots(len(interventions), len(ASSOCIATIONS), sharey=True, squeeze=False)
    for line, intervention in zip(grid, interventions, strict=True):
        for axes, (name, *association) in zip(line, ASSOCIATIONS, strict=True):
            draw_panel(axes, table, intervention, *association)
            axes.set_title(f"{name}, models with different {GREEK[intervention]}")
            axes.set_xlabel("correlation (−1 to 1)")
    note = (
        f"{palette.site_note(palette.shown(table))} "
        f"{elements.intervals_note(table, 'Large points')} A correlation is over the models of one "
        "seed. Pearson's: means by Fisher's transformation. Dotted: 0.5, −0.5. "
        "No point: one of the two does not vary, or accuracies have fewer than three levels."
    )
    handles = [
        *(elements.look_handle(look) for look in palette.MEASURES.values()),
        elements.marker_handle(
            "mutual information, exchanged strings (placebo)", palette.PLACEBO, "D", filled=False
        ),
        elements.marker_handle("alpha or beta itself", style.INK, "|", size=7),
    ]
    elements.legend(figure, handles, note)
    return figure


def draw_panel(
    axes: plt.Axes, table: pd.DataFrame, intervention: str, association: Callable, back: Callable
) -> None:
    """A row for each other quantity: a point for each measure, and the comparisons."""
    axes.axvline(0, **elements.ZERO)
    for bound in (-0.5, 0.5):
        axes.axvline(bound, **STRONG)
    for place, other in enumerate(OTHERS):
        for column, offset in OFFSETS.items():
            values = associated(table, intervention, association, column, other).mean(axis=1)
            if values.notna().any():
                found = back(student(values.dropna()))
                elements.draw_interval(axes, place + offset, found, **LOOKS[column])
    elements.name_rows(axes, list(OTHERS.values()))
    elements.correlation_axis(axes)
