"""Both estimators against the exact truth."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import curves, style
from palimpsest.profiles.figures import looks
from palimpsest.profiles.kinds import LOG_LIKELIHOOD, SPECIFIC, TOTAL

TRUTH = {"color": style.INK, "linewidth": 1.8}
TITLES = {
    TOTAL: "the total effect",
    SPECIFIC: "the specific effect",
}


@style.styled
def truth(table: pd.DataFrame) -> Figure:
    """Means, bias and spread by time since the treatment, against both kinds of truth.

    `table` holds tables `exact_profile` of one language. Before the treatment, the truth is 0.
    """
    rows = table[table["outcome"] == LOG_LIKELIHOOD]
    rows = rows.assign(since=rows["time"] - rows["cohort"])
    models = ", ".join(rows["model"].unique())
    figure = curves.figure_of(
        4.9, f"The estimators against retraining: {looks.subject(table)}, {models}"
    )
    inner = curves.panels_in(figure)
    grid = inner.subplots(2, 3, sharex=True, sharey="col")
    for row, (kind, title) in zip(grid, TITLES.items(), strict=True):
        draw_against(row, rows.assign(truth=rows[kind], error=rows["estimate"] - rows[kind]))
        row[0].set_ylabel("nats")
        row[0].set_title(f"means: estimates and\n{title}")
        row[1].set_title(f"bias: mean error against\n{title}")
        row[2].set_title(f"standard deviation of the\nerrors against {title}")
    grid[0, 2].set_ylim(0, None)
    inner.supxlabel("macro-batches since the treatment", fontsize=8)
    seeds = rows["seed"].nunique()
    note = (
        f"Over all macro-batches and {seeds} seed{'s' if seeds > 1 else ''}; bands: 95 % interval "
        "over the seeds. Total: with a macro-batch minus without. Specific: minus the same of "
        "strings that are trained on in neither run."
    )
    named = [curves.line_handle(look.label, look.colour) for look in looks.ESTIMATORS.values()]
    treatment = curves.line_handle("treatment", **style.EPOCH_LINE)
    handles = [Line2D([], [], label="truth, by retraining", **TRUTH), *named, treatment]
    curves.legend(figure, handles, note)
    return figure


def draw_against(row: list[Axes], rows: pd.DataFrame) -> None:
    """Means, bias and spread of both estimators against the column `truth`."""
    means, bias, spread = row
    for axes in row:
        axes.axvline(-0.5, **style.EPOCH_LINE, color=style.INK)
        axes.axhline(0, **looks.ZERO)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    means.plot(rows.groupby("since")["truth"].mean(), **TRUTH)
    for name, look in looks.ESTIMATORS.items():
        own = rows[rows["estimator"] == name]
        means.plot(own.groupby("since")["estimate"].mean(), color=look.colour)
        draw_bias(bias, own, look.colour)
        spread.plot(own.groupby("since")["error"].std(ddof=0), color=look.colour)


def draw_bias(axes: Axes, rows: pd.DataFrame, colour) -> None:
    """The mean error by time since treatment, with an interval over the seeds."""
    found = intervals_over_seeds(rows, ["since"], "error").sort_index()
    band = {"color": colour, "alpha": curves.BAND_ALPHA, "linewidth": 0}
    axes.fill_between(found.index, found["lower"], found["upper"], **band)
    axes.plot(found["mean"], color=colour)
