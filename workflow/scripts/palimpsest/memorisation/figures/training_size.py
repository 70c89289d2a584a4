"""More data: does better learning come with more or with less memorisation?"""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.memorisation.paper import PAPER
from palimpsest.memorisation.studies.training_size import KIND

FIGURE = Figure(
    __name__,
    order=90,
    chapter="training_size",
    title="More training data",
    caption=(
        "Test loss and memorisation at optimal learning, by measure; larger markers have more "
        "training strings. Further left is better learning; whether the line also rises or "
        "falls depends on the measure."
    ),
    numbers="6",
    paper=PAPER,
    tables=(KIND,),
)
LABELS = {
    "mean_score": "all training strings:\nweighted memorisation (0 to 1)",
    "mean_score_repeated": "repeated strings:\nmean score (0 to 1)",
}


@style.styled
def training_size(study: pd.DataFrame) -> plt.Figure:
    """Test loss against memorisation at optimal learning, along growing training sets.

    Source: section 4, RQ5, figure 6.
    """
    measures = style.measures_in(study["measure"])
    models = list(study["model"].unique())
    columns = [column for column in LABELS if study[column].notna().any()]
    figure = elements.figure_of(
        1.95 * len(columns) + 1.4 + 0.14 * (len(models) // 3), "Learning from more data", study
    )
    inner = elements.panels_in(figure)
    grid = inner.subplots(len(columns), len(measures), sharex=True, sharey=True, squeeze=False)
    for row, column in zip(grid, columns, strict=True):
        for axes, measure in zip(row, measures, strict=True):
            draw_sizes(axes, study[study["measure"] == measure], column, measure, models)
        row[0].set_ylabel(LABELS[column])
    for axes, measure in zip(grid[0], measures, strict=True):
        elements.name_panel(axes, measure)
    elements.share_axis(grid[0, 0])
    grid[0, 0].set_ylim(-0.1, 1.16)  # room for the sizes above their points
    grid[0, 0].margins(x=0.2)
    inner.supxlabel(f"{elements.TEST_LOSS} at optimal learning; grey: Bayes-optimal")
    handles = [*size_handles(study), *elements.model_handles(models)]
    elements.legend(figure, handles, elements.error_note(study))
    return figure


def draw_sizes(
    axes: plt.Axes, rows: pd.DataFrame, column: str, measure: str, models: list[str]
) -> None:
    colour = style.MEASURES[measure].colour
    axes.axvline(rows["optimal_test_loss"].mean(), **style.BAYES_LINE)
    for model in models:
        look = elements.model_marker(model, models, colour)
        by_size = rows[rows["model"] == model].dropna(subset=[column]).groupby("size")
        path = by_size[["test_loss", column]].mean()
        axes.plot(path["test_loss"], path[column], color=colour, linewidth=0.8, alpha=0.7)
        for size, runs in by_size:
            look["markersize"] = marker_size(size, rows["size"])
            x, y = elements.draw_runs(axes, runs["test_loss"], runs[column], ecolor=colour, **look)
            # Only the ends of the line have labels; other sizes may be too close to them.
            ends = {rows["size"].min(): 6, rows["size"].max(): -13}
            if len(models) == 1 and size in ends:
                axes.annotate(str(size), (x, y), xytext=(0, ends[size]),
                              textcoords="offset points", ha="center", fontsize=7)  # fmt: skip


def marker_size(size: int, sizes: pd.Series) -> float:
    """Diameter in points: the area grows with the logarithm of the size."""
    low, high = np.log(sizes.min()), np.log(sizes.max())
    share = (np.log(size) - low) / (high - low) if high > low else 0.5
    return float(np.sqrt(9 + 72 * share))


def size_handles(study: pd.DataFrame) -> list:
    return [
        elements.marker_handle(
            f"{size} training strings", "0.3", size=marker_size(size, study["size"])
        )
        for size in sorted(study["size"].unique())
    ]
