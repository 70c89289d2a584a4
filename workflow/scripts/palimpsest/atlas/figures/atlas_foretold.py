"""The figure of foretelling: how well later runs were foretold, before they were trained."""

from __future__ import annotations

from palimpsest.atlas import kinds
from palimpsest.atlas.kinds import OUTCOMES
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.number_format import number
from palimpsest.statistics import student

FIGURE = Figure(
    __name__,
    order=15,
    chapter="atlas_foretold",
    title="What could be foretold",
    caption=(
        "How much of the differences between the strings of a later run was foretold before it was "
        "trained. See which intervals are above 0, which predicts no better than the run's own "
        "mean, and how little is added to the exact probability of a string."
    ),
    tables=(kinds.FORETELLING,),
)
LEAST = -1.5  # of the axis; smaller values stand at its edge
# By column: the label, and how it is drawn
MARKS = {
    "r_squared": ("foretold, with the 95 % interval over the seeds", {"marker": "o"}),
    "r_squared_by_rarity": (
        "from exact probability and run alone",
        {"marker": "D", "markerfacecolor": "none"},
    ),
    "r_squared_by_mean": ("the same for all strings of a run", {"marker": "|", "color": "0.5"}),
    "placebo": ("placebo: under the names of other strings", {"marker": "x", "color": "0.6"}),
}


@style.styled
def atlas_foretold(table: pd.DataFrame) -> plt.Figure:
    """R squared by outcome and model, from tables `foretelling` of one language."""
    outcomes = [name for name in OUTCOMES if (table["outcome"] == name).any()]
    runs = list(table.groupby(["model", "size", "new"], sort=False).groups)
    figure = elements.figure_of(2.0 + 0.35 * len(runs), "Foretold before training", table)
    panels = elements.panels_in(figure).subplots(
        1, len(outcomes), sharex=True, sharey=True, squeeze=False
    )[0]
    colour = style.MEASURES["contextual"].colour
    for axes, outcome in zip(panels, outcomes, strict=True):
        axes.axvline(0, **elements.ZERO)
        for place, run in enumerate(runs):
            own = table[
                (table["outcome"] == outcome) & (table[["model", "size", "new"]] == run).all(axis=1)
            ]
            for column, (_, mark) in MARKS.items():
                _draw(axes, own[column].dropna(), place, {"color": colour, **mark}, column)
        axes.set_title(outcome, weight="bold")
        axes.set_xlim(LEAST - 0.1, 1.05)
    names = [f"{model}, {size} strings\n(new: {new})" for model, size, new in runs]
    panels[0].set_yticks(range(len(runs)), names)
    panels[0].set_ylim(len(runs) - 0.5, -0.5)
    panels[len(panels) // 2].set_xlabel("R squared (1: all differences between strings)")
    handles = [
        elements.marker_handle(label, mark.get("color", colour), **_without_colour(mark))
        for label, mark in MARKS.values()
    ]
    seeds = elements.counted(table["seed"].nunique(), "seed")
    note = f"Marks: means over {seeds}. Values below {number(LEAST)} stand at the left edge."
    elements.legend(figure, handles, note)
    return figure


def _draw(axes: plt.Axes, values: pd.Series, place: int, mark: dict, column: str) -> None:
    if values.empty:
        return
    found = student(values)
    axes.plot(max(found.mean, LEAST), place, linestyle="none", markersize=5, **mark)
    if column == "r_squared" and not np.isnan(found.lower):
        ends = np.clip([found.lower, found.upper], LEAST, 1.0)
        axes.plot(ends, [place, place], color=mark["color"], linewidth=1.2)


def _without_colour(mark: dict) -> dict:
    return {name: value for name, value in mark.items() if name != "color"}
