"""The correlation of the profiles of models, as matrices."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palimpsest.figures import curves, style
from palimpsest.profiles.figures import looks
from palimpsest.profiles.kinds import AFTER, BEFORE, LOG_LIKELIHOOD

TITLES = {AFTER: "after the treatment", BEFORE: "before the treatment: nothing is memorised"}


@style.styled
def correlation(table: pd.DataFrame) -> Figure:
    """Matrices of correlations, from a table `profile_correlation` of one language.

    Source: Causal Estimation of Memorisation Profiles, figure 6.
    """
    rows = table[table["outcome"] == LOG_LIKELIHOOD]
    models = list(rows["model"].unique())
    title = f"Correlation of profiles: {looks.subject(table)}"
    figure = curves.figure_of(0.55 * len(models) + 1.5, title)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, (cells, title) in zip(panels, TITLES.items(), strict=True):
        draw_matrix(axes, rows[rows["cells"] == cells], models)
        axes.set_title(title)
    return figure


def draw_matrix(axes: Axes, rows: pd.DataFrame, models: list[str]) -> None:
    """One matrix: the mean over seeds in numbers and colour, and the range of the seeds."""
    values = rows.groupby(["model", "other"])["correlation"].agg(["mean", "min", "max"])
    shown = np.full((len(models), len(models)), np.nan)
    for (model, other), (mean, low, high) in values.iterrows():
        row, column = models.index(model), models.index(other)
        if row == column:
            continue
        shown[row, column] = mean
        text = f"{mean:.2f}\n({low:.2f} to {high:.2f})"
        colour = "white" if mean > 0.6 else style.INK
        axes.text(column, row, text, ha="center", va="center", fontsize=7, color=colour)
    axes.imshow(shown[:-1], cmap="Purples", vmin=0, vmax=1, aspect="auto")
    axes.set_xlim(0.5, len(models) - 0.5)
    axes.set_xticks(range(1, len(models)), models[1:])
    axes.set_yticks(range(len(models) - 1), models[:-1])
    axes.grid(False)
