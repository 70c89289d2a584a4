"""More data, larger models: does better learning come with more or with less memorisation?"""

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palimpsest.figures import curves, style

SHARES = {
    "weighted": "all training strings:\nweighted memorisation (0 to 1)",
    "weighted_repeated": "repeated strings:\nmean score (0 to 1)",
}
FAMILY_COLUMNS = 4


@style.styled
def training_size(study: pd.DataFrame) -> Figure:
    """Test loss against memorisation at optimal learning, along growing training sets.

    Parameters
    ----------
    study : table `training_size` of one language

    Source: section 4, RQ5, figure 6.
    """
    measures = style.measures_in(study["measure"])
    models = list(study["model"].unique())
    shares = [column for column in SHARES if study[column].notna().any()]
    figure = curves.figure_of(
        1.95 * len(shares) + 1.4 + 0.14 * (len(models) // 3),
        f"Learning from more data: {curves.subject(study)}",
    )
    inner = curves.panels_in(figure)
    grid = inner.subplots(len(shares), len(measures), sharex=True, sharey=True, squeeze=False)
    for row, column in zip(grid, shares, strict=True):
        for axes, measure in zip(row, measures, strict=True):
            draw_sizes(axes, study[study["measure"] == measure], column, measure, models)
        row[0].set_ylabel(SHARES[column])
    for axes, measure in zip(grid[0], measures, strict=True):
        curves.name_panel(axes, measure)
    curves.share_axis(grid[0, 0])
    grid[0, 0].set_ylim(-0.1, 1.16)  # room for the sizes above their points
    grid[0, 0].margins(x=0.2)
    inner.supxlabel(f"{curves.TEST_LOSS} at optimal learning; grey: Bayes-optimal", fontsize=8)
    handles = [*size_handles(study), *curves.model_handles(models)]
    curves.legend(figure, handles, curves.error_note(study))
    return figure


def draw_sizes(
    axes: Axes, rows: pd.DataFrame, column: str, measure: str, models: list[str]
) -> None:
    """A line per model through its training sizes, from small to large."""
    colour = style.MEASURES[measure].colour
    axes.axvline(rows["optimal_test_loss"].mean(), **style.BAYES_LINE)
    for model in models:
        look = curves.model_marker(model, models, colour)
        points = [
            (size, curves.whiskers(runs["test_loss"]), curves.whiskers(runs[column]))
            for size, runs in rows[rows["model"] == model].dropna(subset=[column]).groupby("size")
        ]
        axes.plot([x for _, (x, _), _ in points], [y for _, _, (y, _) in points], color=colour,
                  linewidth=0.8, alpha=0.7)  # fmt: skip
        for size, (x, x_reach), (y, y_reach) in points:
            axes.errorbar(
                x, y, xerr=x_reach, yerr=y_reach, ecolor=colour, elinewidth=0.7, zorder=3,
                **{**look, "markersize": marker_size(size, rows["size"])},
            )  # fmt: skip
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
    """A legend entry per training size."""
    return [
        curves.line_handle(
            f"{size} training strings", "0.3", linestyle="none", marker="o",
            markersize=marker_size(size, study["size"]),
        )
        for size in sorted(study["size"].unique())
    ]  # fmt: skip


@style.styled
def model_size(study: pd.DataFrame) -> Figure:
    """Test loss against weighted contextual memorisation along the epochs, a panel per family.

    Parameters
    ----------
    study : table `model_size` of one language; contextual memorisation is shown

    Source: appendix F, figures 31 to 38.
    """
    rows = study[study["measure"] == "contextual"]
    rows = rows if len(rows) else study  # a study of other measures shows its first
    rows = rows[rows["measure"] == rows["measure"].iloc[0]]
    families = list(rows["family"].unique())
    columns = min(FAMILY_COLUMNS, len(families))
    lines = -(-len(families) // columns)
    figure = curves.figure_of(2.9 * lines + 0.9, f"Larger models: {curves.subject(rows)}")
    inner = curves.panels_in(figure)
    panels = inner.subplots(lines, columns, sharex=True, sharey=True, squeeze=False).ravel()
    for axes, family in zip(panels, families, strict=False):
        draw_family(axes, rows[rows["family"] == family])
        axes.set_title(family, weight="bold")
    for axes in panels[len(families) :]:
        axes.remove()
    limit_to_memorised(panels[0], rows)
    measure = style.MEASURES[rows["measure"].iloc[0]].label
    inner.supxlabel(curves.TEST_LOSS, fontsize=8)
    inner.supylabel(f"weighted {measure} memorisation (0 to 1)", fontsize=8)
    curves.legend(figure, path_handles(), curves.error_note(rows).replace("Points", "Curves"))
    return figure


def limit_to_memorised(axes: Axes, rows: pd.DataFrame) -> None:
    """End the loss axis where memorisation begins; before that, every path is at 0."""
    memorised = rows[(rows["weighted"] > 0) | (rows["epoch"] == rows["optimal_epoch"])]
    losses = memorised[["test_loss", "optimal_test_loss"]]
    low, high = losses.min().min(), losses.max().max()
    if high > low:
        axes.set_xlim(low - 0.08 * (high - low), high + 0.08 * (high - low))
    top = rows["weighted"].max()
    if top > 0:
        axes.set_ylim(-0.05 * top, 1.1 * top)


def draw_family(axes: Axes, rows: pd.DataFrame) -> None:
    """A path per model through the epochs; larger models are darker."""
    axes.axvline(rows["optimal_test_loss"].mean(), **style.BAYES_LINE)
    models = rows.drop_duplicates("model").sort_values("parameters")
    shades = model_shades(len(models), rows["measure"].iloc[0])
    for (model, parameters), shade in zip(
        models[["model", "parameters"]].itertuples(index=False), shades, strict=True
    ):
        runs = rows[rows["model"] == model]
        path = runs.groupby("epoch")[["test_loss", "weighted"]].mean()
        axes.plot(path["test_loss"], path["weighted"], color=shade, label=counted(parameters))
        axes.plot(*path.iloc[-1], marker="s", markersize=3.5, color=shade)
        draw_optimum(axes, runs[runs["epoch"] == runs["optimal_epoch"]], shade)
    axes.xaxis.set_tick_params(labelbottom=True)
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.13), ncols=2, title="parameters",
                handlelength=1.2, columnspacing=0.8)  # fmt: skip


def draw_optimum(axes: Axes, optimum: pd.DataFrame, shade) -> None:
    """A diamond at optimal learning, with the range of the seeds."""
    x, x_reach = curves.whiskers(optimum["test_loss"])
    y, y_reach = curves.whiskers(optimum["weighted"])
    axes.errorbar(
        x, y, xerr=x_reach, yerr=y_reach, marker="D", color=shade, markeredgecolor="white",
        markeredgewidth=0.6, elinewidth=0.8, zorder=3,
    )  # fmt: skip


def model_shades(n: int, measure: str) -> list:
    """Shades of the measure's colour from light to dark."""
    colour = style.MEASURES[measure].colour
    ramp = matplotlib.colors.LinearSegmentedColormap.from_list(
        measure,
        [style.tinted(colour, 0.45), colour, tuple(0.5 * c for c in style.tinted(colour, 1))],
    )
    return [ramp(level) for level in (np.linspace(0, 1, n) if n > 1 else [0.5])]


def counted(parameters: int) -> str:
    """A number of parameters in the style of model names: 133k, 1.3M, 6.9B."""
    for unit, name in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if parameters >= unit:
            return f"{parameters / unit:.3g}{name}"
    return str(parameters)


def path_handles() -> list:
    """Entries for the marks on a path."""
    return [
        curves.line_handle("optimal learning", linestyle="none", marker="D",
                           markeredgecolor="white"),
        curves.line_handle("last epoch", linestyle="none", marker="s", markersize=3.5),
        curves.line_handle("path from the first epoch to the last"),
        curves.BAYES_HANDLE,
    ]  # fmt: skip
