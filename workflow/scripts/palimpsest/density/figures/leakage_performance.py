"""Performance on leaked strings, by what was leaked."""

from __future__ import annotations

from palimpsest.density import kinds
from palimpsest.density.figures import palette
from palimpsest.density.paper import PAPER
from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.lazy_import import lazy_import

leakage_tables = lazy_import("palimpsest.density.leakage_tables")

FIGURE = Figure(
    __name__,
    order=20,
    chapter="leakage",
    title="Performance on leaked strings",
    caption=(
        "Accuracy of the answer, a string's last symbol (top), and perplexity (bottom) on "
        "leaked strings, placebos and strings never leaked, without an exact copy (left) and "
        "with one (right). See where leaked strings part from the other two, which must not "
        "differ."
    ),
    numbers="3",
    paper=PAPER,
    tables=(kinds.LEAKAGE,),
)
OUTCOMES = {"answer_right": palette.ACCURACY_LABEL, "perplexity": palette.PERPLEXITY_LABEL}


@style.styled
def leakage_performance(table: pd.DataFrame) -> plt.Figure:
    """Accuracy and perplexity of every condition, from tables `leakage` of one language.

    Source: LMD3, figure 3 (bar charts).
    """
    rows = leakage_tables.once(table)
    copies = sorted(rows["n_copies"].unique())
    figure = elements.figure_of(4.3, "Performance on leaked strings", table)
    outcomes = palette.outcomes_of(rows, OUTCOMES)
    grid = figure.subplots(len(outcomes), len(copies), sharex=True, sharey="row", squeeze=False)
    for line, (column, label) in zip(grid, outcomes.items(), strict=True):
        found = intervals_over_seeds(
            rows, ["string_role", "n_copies", "paraphrases"], column
        ).sort_index()
        if column == "answer_right":
            found = palette.of_shares(found)
            palette.share_axis(line[0], found[palette.ENDS])
            for axes in line:
                palette.draw_chance(axes, rows)
        else:
            palette.perplexity_axis(line[0], found[palette.ENDS])
        for axes, n_copies in zip(line, copies, strict=True):
            draw_conditions(axes, found, n_copies)
        line[0].set_ylabel(label)
    for axes, n_copies in zip(grid[0], copies, strict=True):
        axes.set_title("with an exact copy" if n_copies else "without an exact copy", weight="bold")
    for axes in grid[-1]:
        axes.set_xlabel("paraphrases of each leaked string")
        axes.set_xticks(sorted(rows["paraphrases"].unique()))
    note = (
        f"{elements.intervals_note(table)} At the end of training; accuracy: share of strings "
        "whose last symbol is the most probable of all choices "
        f"({palette.CHANCE_NOTE}). All kinds of strings are in the same runs, and are random "
        "draws of one distribution."
    )
    elements.legend(
        figure,
        [elements.look_handle(look, linestyle="-") for look in palette.STRINGS.values()],
        note,
    )
    return figure


def draw_conditions(axes: plt.Axes, means: pd.DataFrame, n_copies: int) -> None:
    for (strings, look), shift in zip(palette.STRINGS.items(), (-0.08, 0, 0.08), strict=True):
        if (strings, n_copies) in {index[:2] for index in means.index}:
            own = means.loc[(strings, n_copies)]
            places = own.index.to_numpy() + shift
            elements.draw_means(axes, places, own, color=look.colour, marker=look.marker)
