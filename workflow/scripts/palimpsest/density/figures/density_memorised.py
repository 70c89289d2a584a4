"""Are strings with more support by other training strings memorised earlier?"""

from __future__ import annotations

from palimpsest.density import kinds
from palimpsest.density.figures import palette
from palimpsest.density.kinds import TRAINED, UNSEEN
from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.lazy_import import lazy_import
from palimpsest.statistics import student

earlier = lazy_import("palimpsest.density.earlier")

FIGURE = Figure(
    __name__,
    order=80,
    chapter="density_memorisation",
    title="Density and the start of memorisation",
    caption=(
        "The rank association of a string's support and the start of its memorisation, by "
        "measure, for trained strings (filled) and strings never trained on (hollow), at "
        "equal exact probability. What both show is no memorisation."
    ),
    tables=(kinds.MEMORISED,),
)
OFFSETS = {TRAINED: -0.17, UNSEEN: 0.17}
TICK = {"marker": "|", "linestyle": "none", "markersize": 4, "markeredgewidth": 0.7, "alpha": 0.55}
NEVER_STARTS = "never starts"


@style.styled
def density_memorised(table: pd.DataFrame) -> plt.Figure:
    """The rank association of support and the start of memorisation, by measure.

    It is the association that the claims compare. `table` holds tables `memorised` of one language.
    """
    embeddings = list(table["embedding"].unique())
    measures = style.measures_with_evidence(table)
    figure = elements.figure_of(
        0.5 * len(measures) + 2.1, "Support and the start of memorisation", table
    )
    widths = [*[1.0] * len(embeddings), 0.6]
    *panels, share = figure.subplots(1, len(widths), sharey=True, width_ratios=widths)
    for axes, name in zip(panels, embeddings, strict=True):
        draw_associations(axes, table[table["embedding"] == name], measures)
        axes.set_title(f"{palette.of_embedding(name).label},\nat equal probability")
        axes.set_xlabel("rank association (−1 to 1)\n← denser is earlier")
    draw_never(share, table, measures)
    note = (
        f"{elements.intervals_note(table)} Somers' D of support and start, over pairs with "
        "different starts, mean over all kernels and bandwidths; small ticks: each of them. The "
        "latest starts of one kind count as never, so that both kinds have equal shares of strings "
        "that never start. Only strings with one copy; a string does not support itself. Seeds in "
        f"which fewer than {earlier.FEWEST_STARTS} strings of a kind start do not count."
    )
    handles = [
        elements.marker_handle(palette.TRAINED_OR_NOT[TRAINED]),
        elements.marker_handle(f"{palette.TRAINED_OR_NOT[UNSEEN]} (placebo)", filled=False),
    ]
    elements.legend(figure, handles, note)
    return figure


def draw_associations(axes: plt.Axes, rows: pd.DataFrame, measures: list) -> None:
    axes.axvline(0, **elements.ZERO)
    name_measures(axes, measures)
    never = rows.groupby(["measure", "evidence", "string_role"])["share_never_memorised"].min()
    for place, measure in enumerate(measures):
        colour = style.MEASURES[measure[0]].colour
        own = rows[(rows["measure"] == measure[0]) & (rows["evidence"] == measure[1])]
        at_each = [
            earlier.associations(of_setting)
            for _, of_setting in own.groupby(["kernel", "bandwidth"])
        ]
        for strings, offset in OFFSETS.items():
            key = (*measure, strings)
            if key not in never.index:
                continue
            found = earlier.associations(own)[strings].dropna()
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
            ends = np.clip(student(found), -1, 1)
            elements.draw_interval(
                axes, place + offset, ends, color=colour, marker="o", markerfacecolor=fill
            )
    elements.correlation_axis(axes)


def draw_never(axes: plt.Axes, table: pd.DataFrame, measures: list) -> None:
    name_measures(axes, measures)
    found = intervals_over_seeds(
        table, ["measure", "evidence", "string_role"], "share_never_memorised"
    )
    found = palette.of_shares(found)
    for place, measure in enumerate(measures):
        colour = style.MEASURES[measure[0]].colour
        for strings, offset in OFFSETS.items():
            if (*measure, strings) in found.index:
                fill = colour if strings == TRAINED else "white"
                ends = found.loc[(*measure, strings), palette.ENDS]
                elements.draw_interval(
                    axes, place + offset, ends, color=colour, marker="o", markerfacecolor=fill
                )
    axes.set_xlim(-0.06, 1.06)
    axes.set_xticks([0, 0.5, 1], ["0", "", "1"])
    axes.set(title="never\nmemorised", xlabel="share\n(0 to 1)")


def name_measures(axes: plt.Axes, measures: list[tuple[str, str]]) -> None:
    several = len({measure for measure, _ in measures}) < len(measures)
    names = [
        style.MEASURES[measure].label.replace(" by ", "\nby ")
        + (f"\n({evidence})" if several else "")
        for measure, evidence in measures
    ]
    elements.name_rows(axes, names)
    # Panels that share the axis have no labels of their own.
    for label, (measure, _) in zip(axes.get_yticklabels(), measures, strict=False):
        label.set_color(style.darkened(style.MEASURES[measure].colour))
