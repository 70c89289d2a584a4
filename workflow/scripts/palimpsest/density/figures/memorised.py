"""Are strings with more support by other training strings memorised earlier?"""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palimpsest.density.earlier import FEWEST_STARTS, associations
from palimpsest.density.figures import looks
from palimpsest.density.kinds import TRAINED, UNSEEN
from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import curves, style
from palimpsest.statistics import student

OFFSETS = {TRAINED: -0.17, UNSEEN: 0.17}
TICK = {"marker": "|", "linestyle": "none", "markersize": 4, "markeredgewidth": 0.7, "alpha": 0.55}
NEVER_STARTS = "never starts"


@style.styled
def density_memorised(table: pd.DataFrame) -> Figure:
    """The rank association of support and the start of memorisation, by measure.

    It is the association that the claims compare. `table` holds tables `memorised` of one language.
    """
    embeddings = list(table["embedding"].unique())
    measures = rows_of(table)
    title = f"Support and the start of memorisation: {curves.subject(table)}"
    figure = curves.figure_of(0.5 * len(measures) + 2.1, title)
    widths = [*[1.0] * len(embeddings), 0.6]
    *panels, share = figure.subplots(1, len(widths), sharey=True, width_ratios=widths)
    for axes, name in zip(panels, embeddings, strict=True):
        draw_associations(axes, table[table["embedding"] == name], measures)
        axes.set_title(f"{looks.of_embedding(name).label},\nat equal probability")
        axes.set_xlabel("rank association (−1 to 1)\n← denser is earlier")
    draw_never(share, table, measures)
    note = (
        f"{looks.seeds_note(table)} Somers' D of support and start, over pairs with different "
        "starts, mean over all kernels and bandwidths; small ticks: each of them. The latest "
        "starts of one kind count as never, so that both kinds have equal shares of strings that "
        "never start. Only strings with one copy; a string does not support itself. Seeds in which "
        f"fewer than {FEWEST_STARTS} strings of a kind start do not count."
    )
    handles = [
        looks.hollow(looks.TRAINED_OR_NOT[TRAINED], True),
        looks.hollow(f"{looks.TRAINED_OR_NOT[UNSEEN]} (placebo)", False),
    ]
    curves.legend(figure, handles, note)
    return figure


def rows_of(table: pd.DataFrame) -> list[tuple[str, str]]:
    """Measures with their evidence, in the order of all figures."""
    known = table[["measure", "evidence"]].drop_duplicates()
    return [
        (measure, evidence)
        for measure in style.measures_in(known["measure"])
        for evidence in known.loc[known["measure"] == measure, "evidence"]
    ]


def draw_associations(axes: Axes, rows: pd.DataFrame, measures: list) -> None:
    """A row for each measure: trained strings and placebos, over all settings and at each."""
    axes.axvline(0, **looks.ZERO)
    name_measures(axes, measures)
    never = rows.groupby(["measure", "evidence", "strings"])["never"].min()
    for place, measure in enumerate(measures):
        colour = style.MEASURES[measure[0]].colour
        own = rows[(rows["measure"] == measure[0]) & (rows["evidence"] == measure[1])]
        at_each = [
            associations(of_setting) for _, of_setting in own.groupby(["kernel", "bandwidth"])
        ]
        for strings, offset in OFFSETS.items():
            key = (*measure, strings)
            if key not in never.index:
                continue
            found = associations(own)[strings].dropna()
            if found.empty:
                said = NEVER_STARTS if never[key] == 1 else "too few starts"
                axes.text(
                    0, place + offset, said, fontsize=6, va="center", ha="center",
                    color=style.darkened(colour),
                )  # fmt: skip
                continue
            means = [each[strings].mean() for each in at_each]
            axes.plot(means, [place + offset] * len(means), color=colour, **TICK)
            fill = colour if strings == TRAINED else "white"
            ends = pd.Series(np.clip(student(found), -1, 1), looks.ENDS)
            looks.draw_row(
                axes, place + offset, ends, color=colour, marker="o", markerfacecolor=fill
            )
    looks.correlation_axis(axes)


def draw_never(axes: Axes, table: pd.DataFrame, measures: list) -> None:
    """The share of strings that are never memorised, by measure."""
    name_measures(axes, measures)
    found = intervals_over_seeds(table, ["measure", "evidence", "strings"], "never")
    found = looks.of_shares(found)
    for place, measure in enumerate(measures):
        colour = style.MEASURES[measure[0]].colour
        for strings, offset in OFFSETS.items():
            if (*measure, strings) in found.index:
                fill = colour if strings == TRAINED else "white"
                looks.draw_row(
                    axes, place + offset, found.loc[(*measure, strings)], color=colour, marker="o",
                    markerfacecolor=fill,
                )  # fmt: skip
    axes.set_xlim(-0.06, 1.06)
    axes.set_xticks([0, 0.5, 1], ["0", "", "1"])
    axes.set(title="never\nmemorised", xlabel="share\n(0 to 1)")


def name_measures(axes: Axes, measures: list[tuple[str, str]]) -> None:
    """Names of the measures at the left, in their colours."""
    several = len({measure for measure, _ in measures}) < len(measures)
    names = [
        style.MEASURES[measure].label.replace(" by ", "\nby ")
        + (f"\n({evidence})" if several else "")
        for measure, evidence in measures
    ]
    looks.name_rows(axes, names)
    # Panels that share the axis have no labels of their own.
    for label, (measure, _) in zip(axes.get_yticklabels(), measures, strict=False):
        label.set_color(style.darkened(style.MEASURES[measure].colour))
