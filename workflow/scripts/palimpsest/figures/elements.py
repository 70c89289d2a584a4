"""Elements of figures: panels, bands, bars of intervals, axes, legends and notes."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable

from palimpsest.figures import style
from palimpsest.figures.libraries import figures, lines, np, patches, pd, plt, ticker

BAND_ALPHA = 0.15
LOSS = "loss (nats per token,\nlogarithmic scale)"
TEST_LOSS = "test loss (nats per token)"
SCORE = "memorisation score (0 to 1)"
PERCENT = "95\N{NO-BREAK SPACE}%"
ZERO = {"color": "0.6", "linewidth": 0.8, "zorder": 1}
BARS = {"elinewidth": 0.9, "markersize": 4, "markeredgewidth": 0.8}


def figure_of(height: float, title: str, study: pd.DataFrame | None = None) -> plt.Figure:
    """A figure as wide as the page, `height` inches high; its title names what `study` is about."""
    if study is not None:
        title = f"{title}: {subject(study)}"
    figure = figures.Figure(figsize=(style.WIDTH, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06, wspace=0.03, hspace=0.04)
    figure.suptitle(textwrap.fill(title, 90), x=0.01, ha="left")
    return figure


def panels_in(figure: plt.Figure) -> plt.Figure:
    """A subfigure for panels with a common axis label, separate from the figure's legend."""
    return figure.subfigures(1, 1)


def grid_of(figure: plt.Figure, n: int, columns: int, **shared) -> list[plt.Axes]:
    """`n` panels in rows of `columns`; the lowest panel of a column has labels at its x ticks.

    `shared` are keywords of `subplots`.
    """
    n_columns = min(columns, n)
    grid = figure.subplots(math.ceil(n / n_columns), n_columns, squeeze=False, **shared)
    for axes in grid.flat[n:]:
        axes.remove()
    panels = list(grid.flat[:n])
    for axes in panels[-n_columns:]:
        axes.tick_params(axis="x", labelbottom=True)
    return panels


def name_panel(axes: plt.Axes, measure: str) -> None:
    look = style.MEASURES[measure]
    label = look.label.replace(" by ", "\nby ") if axes.get_gridspec().ncols > 3 else look.label
    axes.set_title(label, color=style.darkened(look.colour), weight="bold")


def spread(frame: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    """Mean, min and max of `y` over all rows with the same `x`; rows without `y` are left out.

    Returns a frame indexed by x, in order.
    """
    return frame.dropna(subset=[y]).groupby(x)[y].agg(["mean", "min", "max"])


def draw_spread(axes: plt.Axes, curve: pd.DataFrame, colour, **line) -> None:
    draw_band(axes, curve.index, curve["min"], curve["max"], colour)
    axes.plot(curve.index, curve["mean"], color=colour, **line)


def draw_band(axes: plt.Axes, x, lower, upper, colour) -> None:
    axes.fill_between(x, lower, upper, color=colour, alpha=BAND_ALPHA, linewidth=0)


def whiskers(values: pd.Series) -> tuple[float, np.ndarray]:
    """The mean, and its distances [[down], [up]] to min and max, as error bars need them."""
    mean = values.mean()
    return mean, np.clip([[mean - values.min()], [values.max() - mean]], 0, None)


def draw_runs(axes: plt.Axes, x: pd.Series, y: pd.Series, **look) -> tuple[float, float]:
    """A marker at the means of x and y over runs, with bars from min to max; returns the place."""
    (x_mean, x_reach), (y_mean, y_reach) = whiskers(x), whiskers(y)
    axes.errorbar(
        x_mean, y_mean, xerr=x_reach, yerr=y_reach, **{"elinewidth": 0.7, "zorder": 3, **look}
    )
    return x_mean, y_mean


def draw_dots(axes: plt.Axes, x, y, **look) -> None:
    """Small points without edges, such as the values of the seeds next to their mean."""
    axes.plot(x, y, linestyle="none", markeredgewidth=0, **look)


def reach(mean, lower, upper) -> np.ndarray:
    """The distances float[2, ...] from means to the ends of intervals; 0 without an interval."""
    ends = np.nan_to_num([mean - lower, upper - mean])
    return np.clip(ends, 0, None)  # an end that is the mean may differ from it by rounding


def draw_means(axes: plt.Axes, places: Iterable[float], found: pd.DataFrame, **look) -> None:
    ends = reach(found["mean"], found["lower"], found["upper"])
    axes.errorbar(list(places), found["mean"], ends, **{**BARS, **look})


def draw_interval(axes: plt.Axes, place: float, found: Iterable[float], **look) -> None:
    """A mean with a horizontal error bar, at a place on the y axis."""
    mean, lower, upper = found
    ends = reach(*np.array([[mean], [lower], [upper]], dtype=float))
    axes.errorbar([mean], [place], xerr=ends, **{**BARS, "linestyle": "none", **look})


def mark_epoch(axes: plt.Axes, epoch: float, colour=style.INK, **line) -> None:
    if np.isfinite(epoch):
        axes.axvline(epoch, **{**style.EPOCH_LINE, "color": colour, **line})


def mark_optima(axes: plt.Axes, frame: pd.DataFrame) -> None:
    """A vertical dotted line at each model's epoch of optimal learning, the mean over seeds."""
    epochs = frame.groupby("model")["optimal_epoch"].mean().unique()
    for epoch in epochs:
        mark_epoch(axes, epoch, linewidth=1.1 if len(epochs) <= 6 else 0.7)


def scale_losses(axes: plt.Axes, values: pd.DataFrame, floor: float = 0) -> None:
    """A logarithmic y axis for losses.

    The loss of a trained model is at most a tenth of the loss of an untrained model; on a linear
    axis, all interesting values would be at the bottom. The axis spans at most three powers of ten,
    and does not go below `floor`.
    """
    positive = values.where(values > 0)
    low, high = positive.min().min(), positive.max().max()
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 3)))
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())
    if np.isfinite(high):
        axes.set_ylim(max(0.8 * low, floor, high / 1000), 1.25 * high)


def share_axis(axes: plt.Axes) -> None:
    axes.set_ylim(-0.04, 1.04)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])


def correlation_axis(axes: plt.Axes) -> None:
    axes.set_xlim(-1.08, 1.08)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["−1", "", "0", "", "1"])


def name_rows(axes: plt.Axes, names: list[str]) -> None:
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(False, axis="y")
    for place in range(1, len(names)):
        axes.axhline(place - 0.5, color="0.92", linewidth=0.6, zorder=0)


def whole_ticks(axis, most: int | None = None) -> None:
    axis.set_major_locator(ticker.MaxNLocator(most, integer=True))


def plain_numbers(axis) -> None:
    """Tick labels without powers of ten, and with a true minus sign."""
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−")))


def write_in_corner(axes: plt.Axes, text: str, x: float, y: float, pad: float = 1, **look) -> None:
    """Small text on white, to the left of and below a place in units of the panel."""
    axes.text(
        x, y, text, transform=axes.transAxes, ha="right", va="top", fontsize=7,
        bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": pad}, **look,
    )  # fmt: skip


def subject(frame: pd.DataFrame) -> str:
    """Language, number of training strings and models, in words."""
    models = list(frame["model"].unique())
    named = models[0] if len(models) == 1 else f"{len(models)} models"
    strings = f"{range_in_words(frame['size'])} training strings"
    return f"language {frame['language'].iloc[0]}, {strings}, {named}"


def range_in_words(values: pd.Series) -> str:
    low, high = values.min(), values.max()
    return f"{low}" if low == high else f"{low} to {high}"


def spread_note(frame: pd.DataFrame) -> str:
    models, seeds = frame["model"].nunique(), frame["seed"].dropna().nunique()
    runs = len(frame[["model", "seed"]].dropna().drop_duplicates())
    if runs == 1:
        return "One model and one seed: lines without a band."
    if models == 1:
        return f"Lines: mean over {seeds} seeds; bands: smallest to largest value of a seed."
    return (
        f"Lines: mean over {models} models and {counted(seeds, 'seed')}; bands: smallest to "
        f"largest value of the {runs} runs."
    )


def error_note(frame: pd.DataFrame) -> str:
    seeds = frame["seed"].dropna().nunique()
    if seeds == 1:
        return "Points: one seed."
    return f"Points: mean over {seeds} seeds; error bars: smallest to largest value of a seed."


def intervals_note(frame: pd.DataFrame, points: str = "Points") -> str:
    n = frame["seed"].nunique()
    if n == 1:
        return "One seed: points without bars."
    return f"{points}: means over {n} seeds; bars: {PERCENT} intervals over the seeds."


def counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def legend(figure: plt.Figure, handles: list, note: str = "", columns: int | None = None) -> None:
    """A legend under the panels, as wide as its longest entry allows, with a note above it."""
    longest = max(len(handle.get_label()) for handle in handles)
    fitting = max(1, int(style.CHARACTERS_PER_LINE // (longest + 7)))
    # As few rows as this width allows, with the entries distributed evenly
    rows = math.ceil(len(handles) / (columns or fitting))
    figure.legend(
        handles=handles,
        loc="outside lower left",
        ncols=math.ceil(len(handles) / rows),
        title=textwrap.fill(note, style.CHARACTERS_PER_LINE) or None,
        alignment="left",
        columnspacing=1.4,
    )


def line_handle(label: str, colour=style.INK, **line) -> lines.Line2D:
    return lines.Line2D([], [], label=label, **{"color": colour, **line})


def marker_handle(
    label: str, colour="0.35", marker: str = "o", filled: bool = True, size: float = 4.5, **look
) -> lines.Line2D:
    fill = colour if filled else "white"
    shape = {"marker": marker, "markersize": size, "markerfacecolor": fill}
    return line_handle(label, colour, **{"linestyle": "none", **shape, **look})


def look_handle(look: style.Look, label: str = "", **line) -> lines.Line2D:
    shape = {"marker": look.marker, "linestyle": "none", "markersize": 4.5}
    return line_handle(label or look.label, look.colour, **{**shape, **line})


def bar_handle(label: str, colour, alpha: float = 1) -> patches.Patch:
    return patches.Patch(label=label, facecolor=colour, alpha=alpha, linewidth=0)


def measure_handles(measures: list[str]) -> list[lines.Line2D]:
    looks = [style.MEASURES[measure] for measure in measures]
    return [line_handle(look.label, look.colour) for look in looks]


def model_marker(model: str, models: list[str], colour) -> dict:
    return {
        "marker": style.marker(model),
        "markerfacecolor": style.tinted(colour, style.model_tints(models)[model]),
        "markeredgecolor": colour,
        "markeredgewidth": 0.8,
    }


def model_handles(models: list[str], colour="0.3") -> list[lines.Line2D]:
    """A legend entry per model, in grey, because the colour of a panel is the measure's."""
    return [
        line_handle(model, colour, linestyle="none", **model_marker(model, models, colour))
        for model in models
    ]


def bayes_handle() -> lines.Line2D:
    return line_handle("Bayes-optimal loss", **style.BAYES_LINE)
