"""How near the nearest training strings are to leaked strings, and to others."""

from __future__ import annotations

from palimpsest.density import kinds
from palimpsest.density.figures import palette
from palimpsest.density.paper import PAPER
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt

FIGURE = Figure(
    __name__,
    order=35,
    chapter="leakage",
    title="Nearest training strings",
    caption=(
        "The distances of test strings to the nearest training string (left) and to several "
        "nearest ones (right), with all copies and paraphrases of leaked strings. See whether "
        "leaked strings are nearer than the other two."
    ),
    numbers="14",
    paper=PAPER,
    tables=(kinds.LEAKAGE,),
)
COLUMNS = {
    "nearest": "distance to the nearest",
    "mean_distance": "mean distance to several nearest",
}


@style.styled
def density_neighbours(table: pd.DataFrame) -> plt.Figure:
    """Shares of test strings within each distance, from tables `leakage` of one language.

    Source: LMD3, figure 14.
    """
    leaks = table["n_copies"] + table["paraphrases"]
    rows = table[leaks == leaks.max()]
    embeddings = list(rows["embedding"].unique())
    figure = elements.figure_of(2.1 * len(embeddings) + 1.0, "Nearest training strings", table)
    grid = figure.subplots(len(embeddings), len(COLUMNS), sharey=True, squeeze=False)
    for line, embedding in zip(grid, embeddings, strict=True):
        own = rows[rows["embedding"] == embedding]
        for axes, (column, label) in zip(line, COLUMNS.items(), strict=True):
            draw_shares(axes, own, column)
            axes.set_xlabel(label)
            axes.set_title(palette.of_embedding(embedding).label)
        line[0].set_ylabel("share of strings\nat most as far")
    first = rows.iloc[0]
    note = (
        f"Test strings of {elements.counted(table['seed'].nunique(), 'seed')}, pooled. Copies of "
        f"each leaked string: {first['n_copies']}; paraphrases: {first['paraphrases']}. "
        "A copy is at distance 0."
    )
    handles = [elements.line_handle(look.label, look.colour) for look in palette.STRINGS.values()]
    elements.legend(figure, handles, note)
    return figure


def draw_shares(axes: plt.Axes, rows: pd.DataFrame, column: str) -> None:
    """The share of strings of each kind that are at most as far as each distance."""
    for strings, look in palette.STRINGS.items():
        distances = np.sort(rows.loc[rows["string_role"] == strings, column].to_numpy())
        shares = np.arange(len(distances) + 1) / len(distances)
        axes.step([*distances, distances[-1]], shares, where="pre", color=look.colour)
    axes.set_xlim(left=0)
    axes.set_ylim(0, 1.03)
