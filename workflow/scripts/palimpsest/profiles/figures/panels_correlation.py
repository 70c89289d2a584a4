"""The correlation of the profiles of panels, as matrices."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.profiles import kinds
from palimpsest.profiles.kinds import AFTER, BEFORE
from palimpsest.profiles.paper import PAPER

FIGURE = Figure(
    __name__,
    order=130,
    chapter="profiles",
    title="Profiles of small and large models, from panels",
    caption=(
        "Correlation of two panels' profiles after (left, middle) and before (right) the "
        "treatment: as estimated (left), and without errors, with 95 % intervals over units "
        "(middle, right). Those at the right should hold 0: nothing is memorised yet."
    ),
    numbers="6",
    paper=PAPER,
    tables=(kinds.PANELS_CORRELATION,),
    drawn_for="",
)
MATRICES = (
    ("as estimated", AFTER, "correlation"),
    ("without errors", AFTER, "corrected"),
    ("before the treatment", BEFORE, "corrected"),
)


@style.styled
def panels_correlation(table: pd.DataFrame) -> plt.Figure:
    """Matrices of correlations, from a table `panels_correlation`.

    Source: Causal Estimation of Memorisation Profiles, figure 6.
    """
    names = list(dict.fromkeys([*table["panel"], *table["other"]]))
    figure = elements.figure_of(0.55 * len(names) + 1.3, "Correlation of the profiles of panels")
    for axes, (title, side, column) in zip(
        figure.subplots(1, 3, sharey=True), MATRICES, strict=True
    ):
        draw_matrix(axes, table[table["cells"] == side], column, names)
        axes.set(title=title, xlabel="larger model")
    figure.axes[0].set_ylabel("smaller model")
    return figure


def draw_matrix(axes: plt.Axes, rows: pd.DataFrame, column: str, names: list[str]) -> None:
    """One matrix: the smaller models are rows, the larger ones are columns."""
    shown = np.full((len(names), len(names)), np.nan)
    for row in rows.itertuples():
        value = getattr(row, column)
        at = names.index(row.panel), names.index(row.other)
        shown[at] = value
        text = "–" if pd.isna(value) else f"{value:.2f}"
        if column == "corrected" and not pd.isna(value):
            text += f"\n({row.lower:.2f} to {row.upper:.2f})".replace("-", "−")
        colour = "white" if abs(value) > 0.6 else style.INK
        axes.text(at[1], at[0], text, ha="center", va="center", fontsize=6, color=colour)
    axes.imshow(shown[:-1], cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
    axes.set_xlim(0.5, len(names) - 0.5)
    axes.set_xticks(range(1, len(names)), names[1:])
    axes.set_yticks(range(len(names) - 1), names[:-1])
    axes.grid(False)
