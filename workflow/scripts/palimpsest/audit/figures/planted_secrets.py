"""What each detector finds of records whose truth is known, and the epsilon that it may show."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from palimpsest.audit.kinds import (
    ALL_COPIES,
    DETECTORS,
    EPSILON,
    FALSE_ALARMS,
    PRECISION,
    RECALL,
)
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt

FIGURE = Figure(
    __name__,
    order=20,
    chapter="attacks",
    title="What each detector finds",
    caption=(
        "The share of members that each detector finds, by their copies, at one share of "
        "false alarms (broken line); the share of members among all that it finds; and, where "
        "a coin chose the member of each pair, the epsilon that its guesses show. For a model "
        "that saw none of the records, all should stay at the broken line."
    ),
    tables=(DETECTORS,),
    drawn_for="records",
)
TRUTH = "the truth"
ROW = 0.22  # inches
LIGHTEST = 0.4  # colour, of the fewest copies
LANES = 0.72  # of a row, from the first number of copies to the last
COLOUR = style.OTHER_COLOURS[1]
WIDTHS = (1.6, 1.0, 1.0)
MOST = {"marker": "|", "markersize": 5, "color": "0.6", "linestyle": "none"}
RATE_LINE = {"color": "0.35", "linestyle": style.LINES["test"], "linewidth": 0.8, "zorder": 1}


@style.styled
def planted_secrets(detectors: pd.DataFrame) -> plt.Figure:
    """From the tables of the targets on one corpus: a row of panels for each target.

    Epsilon has no panel if there is no bound for any target.
    """
    known = detectors.dropna(subset="lower")
    if np.isnan(rate := known["rate"].max()):
        return elements.figure_of(1.0, "Too few records are known that a model was not trained on")
    found, bounds = known[known["rate"] == rate], known[known["statistic"] == EPSILON]
    is_bounded = len(bounds) > 0
    models = list(dict.fromkeys(found["model"]))
    rows = {model: rows_of(found[found["model"] == model]) for model in models}
    heights = [ROW * (len(names) + 1) + 0.5 for names in rows.values()]
    title = f"What each detector finds: {found['language'].iloc[0]}"
    figure = elements.figure_of(1.2 + sum(heights), title)
    parts = elements.panels_in(figure).subfigures(len(models), 1, height_ratios=heights)
    tints = tints_of(found)
    for model, part in zip(models, np.atleast_1d(parts), strict=True):
        part.suptitle(model, x=0.01, ha="left")
        widths = WIDTHS[: 3 if is_bounded else 2]
        panels = part.subplots(1, len(widths), sharey=True, width_ratios=widths)
        here = (table[table["model"] == model] for table in (found, bounds))
        draw_target(panels, *here, [TRUTH, *rows[model]], tints)
        if model not in {*bounds["model"]}:  # A gap, so that the panels of all stand in columns
            for axes in panels[2:]:
                axes.remove()
    elements.legend(figure, handles_of(tints, is_bounded), note_of(found, is_bounded))
    return figure


def rows_of(found: pd.DataFrame) -> list[str]:
    """The names of detectors, by family, those that find most first."""
    whole = found[(found["statistic"] == RECALL) & (found["copies"] == ALL_COPIES)]
    families = {name: place for place, name in enumerate(dict.fromkeys(found["family"]))}
    order = whole.assign(place=whole["family"].map(families))
    return order.sort_values(["place", "value"], ascending=[True, False])["detector"].tolist()


def tints_of(found: pd.DataFrame) -> dict[int, tuple]:
    """A colour for each number of copies, from light to full."""
    copies = sorted({*found["copies"]} - {ALL_COPIES})
    strengths = np.linspace(LIGHTEST, 1, len(copies))
    return {
        n: style.tinted(COLOUR, strength) for n, strength in zip(copies, strengths, strict=True)
    }


def draw_target(
    panels: Sequence[plt.Axes],
    found: pd.DataFrame,
    bounds: pd.DataFrame,
    rows: list[str],
    tints: dict,
) -> None:
    """Recall, precision and, in a third panel, if there is one, bounds of epsilon."""
    recall, precision, *of_bounds = panels
    lanes = dict(zip(tints, np.linspace(-LANES / 2, LANES / 2, len(tints) + 2)[1:-1], strict=True))
    for axes, line in ((recall, found["rate"].iloc[0]), (precision, 0.5)):
        axes.axvline(line, **RATE_LINE)
        axes.plot(1, 0, marker="D", markersize=4, color=style.INK, linestyle="none")
        axes.set_xlim(-0.03, 1.03)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])
    for row in found[found["value"].notna()].itertuples():
        y, interval = rows.index(row.detector), (row.value, row.lower, row.upper)
        if row.statistic == RECALL and row.copies != ALL_COPIES:
            look = {"color": tints[row.copies], "marker": "o", "markersize": 3}
            elements.draw_interval(recall, y + lanes[row.copies], interval, **look)
        if row.statistic == PRECISION and row.copies == ALL_COPIES:
            elements.draw_interval(precision, y, interval, color=style.INK, marker="o")
    for axes in of_bounds:
        draw_bounds(axes, bounds[bounds["copies"] != ALL_COPIES], rows, lanes, tints)
    elements.name_rows(recall, rows)
    recall.set_ylim(len(rows) - 0.4, -0.6)
    family = found.drop_duplicates("detector").set_index("detector")["family"]
    for place, (above, below) in enumerate(pairwise(family.loc[rows[1:]]), start=2):
        if above != below:
            for axes in panels:
                axes.axhline(place - 0.5, color="0.6", linewidth=0.8, zorder=1)
    labels = (
        "share of members found",
        "precision (share of those found)",
        "replacement ε, at least (nats)",
    )
    for axes, label in zip(panels, labels, strict=False):
        axes.set_xlabel(label)
        axes.tick_params(axis="y", length=0)
        axes.grid(axis="y", visible=False)


def draw_bounds(axes: plt.Axes, bounds: pd.DataFrame, rows: list, lanes: dict, tints: dict) -> None:
    # Imported here, because Snakemake reads this file, and pandas loads slowly.
    from palimpsest.audit.canaries import one_run_epsilon

    for row in bounds.itertuples():
        y, colour = rows.index(row.detector) + lanes[row.copies], tints[row.copies]
        axes.plot(one_run_epsilon(row.n, row.n), y, **MOST)
        axes.plot([0, row.lower], [y, y], color=colour, linewidth=0.9)
        axes.plot(row.lower, y, marker="o", markersize=3, color=colour)
    axes.set_xlim(left=-0.08)


def handles_of(tints: dict, is_bounded: bool) -> list:
    named = [
        elements.marker_handle("1 copy" if n == 1 else f"{n} copies", tint)
        for n, tint in tints.items()
    ]
    most = [elements.marker_handle("the most that the pairs can show", "0.6", "|")]
    return [
        *named,
        elements.marker_handle(TRUTH, style.INK, "D"),
        *(most if is_bounded else []),
        elements.line_handle("false alarms asked for; half and half", **RATE_LINE),
    ]


def note_of(found: pd.DataFrame, is_bounded: bool) -> str:
    alarms = found[found["statistic"] == FALSE_ALARMS]
    of_bounds = (
        f" Epsilon: lower bounds with a confidence of {elements.PERCENT} each, of detectors that "
        "see the model and the text alone; adding or removing a record has at least half."
    )
    return (
        "From above to below: attacks, extraction and, for a model that is trained again, measures "
        f"of memorisation. Bars: {elements.PERCENT} intervals over groups of records (exact). "
        "Threshold: a record never trained on is found with a probability of "
        f"{alarms['rate'].iloc[0]:g} at most, from {alarms['n'].iloc[0]} such records."
        + (of_bounds if is_bounded else "")
    )
