"""What training without a production changes, for its own strings and for others."""

from __future__ import annotations

from palimpsest.density import kinds
from palimpsest.density.figures import palette
from palimpsest.density.paper import PAPER
from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt

FIGURE = Figure(
    __name__,
    order=50,
    chapter="leakage",
    title="Training without a production",
    caption=(
        "The change of density, loss and accuracy when the strings of a production (row) are "
        "left out of training, for test strings of this production and of others. See whether "
        "the filled points, and only these, are away from 0."
    ),
    numbers="8",
    paper=PAPER,
    tables=(kinds.LEFT_OUT,),
)
OTHERS = "0.5"
OUTCOMES = {
    "loss": ("loss", "change of the mean\nloss (nats per token)"),
    "answer_right": ("accuracy", "change of the share of\nright answers"),
}
STEP = 0.6  # of a row's height: what the groups of a row take


@style.styled
def density_left_out(table: pd.DataFrame) -> plt.Figure:
    """Changes of density and of performance, from tables `left_out` of one language.

    Source: LMD3, appendix A.6 and figure 8.
    """
    productions = list(dict.fromkeys(table["left_out"]))
    embeddings = list(table["embedding"].unique())
    once = table[table["embedding"] == embeddings[0]]
    outcomes = palette.outcomes_of(once, OUTCOMES)
    drawn = [
        *(
            (table[table["embedding"] == name], "log_density", palette.of_embedding(name))
            for name in embeddings
        ),
        *((once, column, None) for column in outcomes),
    ]
    labels = [
        *("change of the\nmean log density" for _ in embeddings),
        *(label for _, label in outcomes.values()),
    ]
    titles = [
        *(palette.of_embedding(name).label for name in embeddings),
        *(title for title, _ in outcomes.values()),
    ]
    groups = table["group"].nunique()
    figure = elements.figure_of(
        len(productions) * (0.25 + 0.09 * groups) + 1.7, "Training without a production", table
    )
    panels = figure.subplots(1, len(drawn), sharey=True)
    for axes, what, label, name in zip(panels, drawn, labels, titles, strict=True):
        draw_changes(axes, *what, productions)
        axes.set_xlabel(label)
        axes.set_title(name)
    panels[0].set_ylabel("production that is left out")
    note = (
        f"{elements.intervals_note(table)} Changes are against training on all productions; "
        f"{palette.setting(table)}. The points of a row: test strings of each production, in the "
        "order of the rows. Hidden states are those of two models, one of them trained without the "
        "production: their densities differ for other reasons, too, and no claim compares them."
    )
    handles = [
        elements.marker_handle("strings of the production that is left out"),
        elements.marker_handle("strings of each of the other productions", filled=False),
    ]
    elements.legend(figure, handles, note)
    return figure


def draw_changes(
    axes: plt.Axes, rows: pd.DataFrame, column: str, look: style.Look | None, productions: list[str]
) -> None:
    axes.axvline(0, **elements.ZERO)
    elements.name_rows(axes, productions)
    groups = [*productions, *sorted(set(rows["group"]) - set(productions))]
    found = intervals_over_seeds(rows, ["left_out", "group"], column)
    colour = look.colour if look else style.INK
    step = STEP / max(1, len(groups) - 1)
    for (left_out, group), change in found.iterrows():
        place = productions.index(left_out) - STEP / 2 + step * groups.index(group)
        own = left_out == group
        shape = {"marker": "o", "markerfacecolor": colour if own else "white"}
        elements.draw_interval(
            axes,
            place,
            change[palette.ENDS],
            color=colour if own else OTHERS,
            markeredgecolor=colour,
            **shape,
        )
