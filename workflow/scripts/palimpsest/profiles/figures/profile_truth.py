"""Both estimators against the exact truth."""

from __future__ import annotations

from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.profiles import kinds
from palimpsest.profiles.figures import palette
from palimpsest.profiles.kinds import LOG_LIKELIHOOD, SPECIFIC, TOTAL

FIGURE = Figure(
    __name__,
    order=70,
    chapter="profiles",
    title="The estimators against retraining",
    caption=(
        "Both estimators beside the true effect, by retraining without each macro-batch: in "
        "total (top), and beyond the effect on strings in neither run (bottom). See whether "
        "the bands of the bias hold 0, and which estimator spreads less."
    ),
    tables=(kinds.EXACT_PROFILE,),
)
TRUTH = {"color": style.INK, "linewidth": 1.8}
TITLES = {TOTAL: "the total effect", SPECIFIC: "the specific effect"}


@style.styled
def profile_truth(table: pd.DataFrame) -> plt.Figure:
    """Means, bias and spread by time since the treatment, against both kinds of truth.

    `table` holds tables `exact_profile` of one language. Before the treatment, the truth is 0.
    """
    rows = table[table["outcome"] == LOG_LIKELIHOOD]
    rows = rows.assign(since=rows["time"] - rows["cohort"])
    title, models = "The estimators against retraining", rows["model"].unique()
    figure = palette.figure_of(4.9, title, table, models)
    inner = elements.panels_in(figure)
    grid = inner.subplots(2, 3, sharex=True, sharey="col")
    for row, (kind, title) in zip(grid, TITLES.items(), strict=True):
        draw_against(row, rows.assign(truth=rows[kind], error=rows["estimate"] - rows[kind]))
        row[0].set_ylabel("nats")
        row[0].set_title(f"means: estimates and\n{title}")
        row[1].set_title(f"bias: mean error against\n{title}")
        row[2].set_title(f"standard deviation of the\nerrors against {title}")
    grid[0, 2].set_ylim(0, None)
    inner.supxlabel("macro-batches since the treatment")
    seeds = rows["seed"].nunique()
    note = (
        f"Over all macro-batches and {elements.counted(seeds, 'seed')}; bands: 95 % interval "
        "over the seeds. Total: with a macro-batch minus without. Specific: minus the same of "
        "strings that are trained on in neither run."
    )
    named = [elements.line_handle(look.label, look.colour) for look in palette.ESTIMATORS.values()]
    treatment = elements.line_handle("treatment", **style.EPOCH_LINE)
    handles = [elements.line_handle("truth, by retraining", **TRUTH), *named, treatment]
    elements.legend(figure, handles, note)
    return figure


def draw_against(row: list[plt.Axes], rows: pd.DataFrame) -> None:
    """Means, bias and spread of both estimators against the column `truth`."""
    means, bias, spread = row
    for axes in row:
        axes.axvline(-0.5, **style.EPOCH_LINE, color=style.INK)
        axes.axhline(0, **elements.ZERO)
        elements.whole_ticks(axes.xaxis)
    means.plot(rows.groupby("since")["truth"].mean(), **TRUTH)
    for name, look in palette.ESTIMATORS.items():
        own = rows[rows["estimator"] == name]
        means.plot(own.groupby("since")["estimate"].mean(), color=look.colour)
        draw_bias(bias, own, look.colour)
        spread.plot(own.groupby("since")["error"].std(ddof=0), color=look.colour)


def draw_bias(axes: plt.Axes, rows: pd.DataFrame, colour) -> None:
    found = intervals_over_seeds(rows, ["since"], "error").sort_index()
    elements.draw_band(axes, found.index, found["lower"], found["upper"], colour)
    axes.plot(found["mean"], color=colour)
