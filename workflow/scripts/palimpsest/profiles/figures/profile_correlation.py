"""The correlation of the profiles of models, as matrices."""

from __future__ import annotations

from palimpsest.figures import style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.profiles import kinds
from palimpsest.profiles.figures import palette
from palimpsest.profiles.kinds import AFTER, BEFORE, LOG_LIKELIHOOD
from palimpsest.profiles.paper import PAPER

FIGURE = Figure(
    __name__,
    order=60,
    chapter="profiles",
    title="Profiles of small and large models",
    caption=(
        "Pearson correlation of two models' profiles over the cells after (left) and before "
        "(right) the treatment: mean over seeds, with the smallest and the largest. The left "
        "should be above the right: before the treatment only the errors on common strings "
        "are correlated."
    ),
    numbers="6",
    paper=PAPER,
    tables=(kinds.PROFILE_CORRELATION,),
)
TITLES = {AFTER: "after the treatment", BEFORE: "before the treatment: nothing is memorised"}


@style.styled
def profile_correlation(table: pd.DataFrame) -> plt.Figure:
    """Matrices of correlations, from a table `profile_correlation` of one language.

    Source: Causal Estimation of Memorisation Profiles, figure 6.
    """
    rows = table[table["outcome"] == LOG_LIKELIHOOD]
    models = list(rows["model"].unique())
    figure = palette.figure_of(0.55 * len(models) + 1.5, "Correlation of profiles", table)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (cells, title) in zip(panels, TITLES.items(), strict=True):
        draw_matrix(axes, rows[rows["cells"] == cells], models)
        axes.set(title=title, xlabel="larger model")
    panels[0].set_ylabel("smaller model")
    return figure


def draw_matrix(axes: plt.Axes, rows: pd.DataFrame, models: list[str]) -> None:
    """One matrix: the mean over seeds in numbers and colour, and the range of the seeds."""
    values = rows.groupby(["model", "other"])["correlation"].agg(["mean", "min", "max"])
    shown = np.full((len(models), len(models)), np.nan)
    for (model, other), (mean, low, high) in values.iterrows():
        row, column = models.index(model), models.index(other)
        if row == column:
            continue
        shown[row, column] = mean
        text = f"{mean:.2f}\n({low:.2f} to {high:.2f})".replace("-", "−")
        colour = "white" if abs(mean) > 0.6 else style.INK
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
    axes.imshow(shown[:-1], cmap="PuOr", vmin=-1, vmax=1, aspect="auto")
    axes.set_xlim(0.5, len(models) - 0.5)
    axes.set_xticks(range(1, len(models)), models[1:])
    axes.set_yticks(range(len(models) - 1), models[:-1])
    axes.grid(False)
