"""Means of the measures of given activations, by dose and by accuracy."""

from __future__ import annotations

from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.information import kinds
from palimpsest.information.figures.given_distributions import COLOURS, LABELS, title_of
from palimpsest.information.kinds import ACCURACY, DOSE
from palimpsest.information.paper import PAPER
from palimpsest.number_format import number

FIGURE = Figure(
    __name__,
    order=70,
    chapter="given",
    title="Measures of given models",
    caption=(
        "The mean of each measure over neurons or pairs and layers, by the dose of the models "
        "and by their accuracy, with Kendall’s tau; by model where neither is known or "
        "differs. See whether the measures change with the dose, and order the models as "
        "accuracy does."
    ),
    numbers="9",
    paper=PAPER,
    tables=(kinds.GIVEN_SCORES, kinds.GIVEN_ASSOCIATIONS),
    some_empty=(kinds.GIVEN_ASSOCIATIONS,),
    drawn_for="group",
)
AXES = {DOSE: "dose", ACCURACY: "accuracy (0 to 1)"}


@style.styled
def given_scores(scores: pd.DataFrame, associations: pd.DataFrame) -> plt.Figure:
    """Means of given models, from tables of one group.

    Source: the paper's figure 9 and table 6.
    """
    wide = scores.pivot(index=["seed", "model"], columns="score", values="value").reset_index()
    shown = [name for name in AXES if name in wide and wide[name].nunique() > 1]
    figure = elements.figure_of(1.9 * max(1, len(shown)) + 1.1, title_of("Means", scores))
    inner = elements.panels_in(figure)
    grid = inner.subplots(max(1, len(shown)), len(LABELS), squeeze=False)
    for line, other in zip(grid, shown or [None], strict=True):
        for axes, (column, label) in zip(line, LABELS.items(), strict=True):
            draw_panel(axes, wide, column, other)
            axes.set_ylabel(f"{label[:-1]}, mean)")
            axes.set_xlabel(AXES.get(other, "model"))
            if text := tau_of(associations, column, other):
                axes.set_title(text)
    of_doses = (
        f" Large points: means over the seeds of a dose; bars: {elements.PERCENT} intervals over "
        "the seeds."
    )
    of_tau = (
        " Tau: Kendall’s, over the models of a seed, mean over the seeds; in brackets its "
        "interval, or the exact p-value of one seed."
    )
    is_ranked = any(tau_of(associations, column, other) for column in LABELS for other in shown)
    note = f"Small points: models.{of_doses * (DOSE in shown)}{of_tau * is_ranked}"
    handles = [
        elements.marker_handle(label.replace("\n(nats)", ""), COLOURS[column])
        for column, label in LABELS.items()
    ]
    elements.legend(figure, handles, note)
    return figure


def draw_panel(axes: plt.Axes, wide: pd.DataFrame, column: str, other: str | None) -> None:
    colour = COLOURS[column]
    if column not in wide:
        return
    if other is None:
        axes.plot(range(len(wide)), wide[column], "o", color=colour, markersize=3)
        axes.set_xticks(range(len(wide)), wide["model"], rotation=90)
        return
    elements.draw_dots(
        axes, wide[other], wide[column], marker="o", markersize=2.6, color=colour, alpha=0.6
    )
    if other == DOSE:
        found = intervals_over_seeds(wide.sort_values(DOSE), [DOSE], column)
        elements.draw_means(axes, found.index, found, color=colour, marker="o", linewidth=1.1)


def tau_of(associations: pd.DataFrame, column: str, other: str | None) -> str:
    """Kendall's tau of a measure in words; nothing if there is none."""
    rows = associations[(associations["score"] == column) & (associations["other"] == other)]
    if rows.empty:
        return ""
    row = rows.iloc[0]
    if row["n_seeds"] == 1:
        within = "" if pd.isna(row["p_value"]) else f" (p = {number(row['p_value'])})"
    else:
        within = f" ({number(row['tau_lower'])} to {number(row['tau_upper'])})"
    return f"tau {number(row['tau'])}{within}"
