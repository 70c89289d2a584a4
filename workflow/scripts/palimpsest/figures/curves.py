"""Parts that figures share: curves with bands, notes, legends and axes."""

import math
import textwrap

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

from palimpsest.figures import style

BAND_ALPHA = 0.15
LOSS = "loss (nats per token,\nlogarithmic scale)"
TEST_LOSS = "test loss (nats per token)"
SCORE = "memorisation score (0 to 1)"


def figure_of(height: float, title: str) -> Figure:
    """An empty figure of full width with a title at its upper left."""
    figure = Figure(figsize=(style.WIDTH, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06, wspace=0.03, hspace=0.04)
    figure.suptitle(textwrap.fill(title, 90), x=0.01, ha="left")
    return figure


def panels_in(figure: Figure) -> Figure:
    """A subfigure for panels with a common axis label, separate from the figure's legend."""
    return figure.subfigures(1, 1)


def name_panel(axes: Axes, measure: str) -> None:
    """The measure's name above its panel, in its colour."""
    look = style.MEASURES[measure]
    label = look.label.replace(" by ", "\nby ") if axes.get_gridspec().ncols > 3 else look.label
    axes.set_title(label, color=style.darkened(look.colour), weight="bold")


def spread(frame: pd.DataFrame, x: str, y: str) -> pd.DataFrame:
    """Mean, min and max of `y` over all rows with the same `x`; rows without `y` are left out.

    Returns a frame indexed by x, in order.
    """
    return frame.dropna(subset=[y]).groupby(x)[y].agg(["mean", "min", "max"])


def draw_spread(axes: Axes, curve: pd.DataFrame, colour, **line) -> None:
    """A curve from `spread`: the mean as a line, min to max as a band."""
    axes.fill_between(
        curve.index, curve["min"], curve["max"], color=colour, alpha=BAND_ALPHA, linewidth=0
    )
    axes.plot(curve.index, curve["mean"], color=colour, **line)


def whiskers(values: pd.Series) -> tuple[float, np.ndarray]:
    """The mean, and its distances [[down], [up]] to min and max, in the format of error bars."""
    mean = values.mean()
    return mean, np.clip([[mean - values.min()], [values.max() - mean]], 0, None)


def mark_epoch(axes: Axes, epoch: float, colour=style.INK, **line) -> None:
    """A vertical dotted line at an epoch, unless there is none."""
    if np.isfinite(epoch):
        axes.axvline(epoch, **{**style.EPOCH_LINE, "color": colour, **line})


def mark_optima(axes: Axes, frame: pd.DataFrame) -> None:
    """A vertical dotted line per model at its epoch of optimal learning, averaged over seeds."""
    epochs = frame.groupby("model")["optimal_epoch"].mean().unique()
    for epoch in epochs:
        mark_epoch(axes, epoch, linewidth=1.1 if len(epochs) <= 6 else 0.7)


def scale_losses(axes: Axes, values: pd.DataFrame, floor: float = 0) -> None:
    """A logarithmic y axis for losses.

    The loss of a trained model is at most a tenth of the loss of an untrained model; on a linear
    axis, all interesting values would be at the bottom. The axis spans at most three powers of ten,
    and does not go below `floor`.
    """
    positive = values.where(values > 0)
    low, high = positive.min().min(), positive.max().max()
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 3)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    if np.isfinite(high):
        axes.set_ylim(max(0.8 * low, floor, high / 1000), 1.25 * high)


def share_axis(axes: Axes) -> None:
    """A y axis for shares and scores, with room for lines at 0 and at 1."""
    axes.set_ylim(-0.04, 1.04)
    axes.set_yticks([0, 0.25, 0.5, 0.75, 1], ["0", "", "0.5", "", "1"])


def subject(frame: pd.DataFrame) -> str:
    """The subject of the rows, in words: language, number of training strings, models."""
    models = list(frame["model"].unique())
    sizes = sorted(frame["size"].unique())
    strings = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    named = models[0] if len(models) == 1 else f"{len(models)} models"
    return f"language {frame['language'].iloc[0]}, {strings} training strings, {named}"


def spread_note(frame: pd.DataFrame) -> str:
    """One sentence on the meaning of lines and bands."""
    models, seeds = frame["model"].nunique(), frame["seed"].dropna().nunique()
    runs = len(frame[["model", "seed"]].dropna().drop_duplicates())
    if runs == 1:
        return "One model and one seed: lines without a band."
    if models == 1:
        return f"Lines: mean over {seeds} seeds; bands: smallest to largest value of a seed."
    return (
        f"Lines: mean over {models} models and {_counted(seeds, 'seed')}; bands: smallest to "
        f"largest value of the {runs} runs."
    )


def error_note(frame: pd.DataFrame) -> str:
    """One sentence on the meaning of points and error bars."""
    seeds = frame["seed"].dropna().nunique()
    if seeds == 1:
        return "Points: one seed."
    return f"Points: mean over {seeds} seeds; error bars: smallest to largest value of a seed."


def _counted(n: int, noun: str) -> str:
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"


def legend(figure: Figure, handles: list, note: str = "", columns: int | None = None) -> None:
    """A legend under the panels, as wide as its longest entry allows, with a note above it."""
    longest = max(len(handle.get_label()) for handle in handles)
    fitting = max(1, int(style.CHARACTERS_PER_LINE // (longest + 7)))
    # Use as few rows as possible for this width, then distribute the entries evenly.
    rows = math.ceil(len(handles) / (columns or fitting))
    figure.legend(
        handles=handles,
        loc="outside lower left",
        ncols=math.ceil(len(handles) / rows),
        title=textwrap.fill(note, style.CHARACTERS_PER_LINE) or None,
        alignment="left",
        columnspacing=1.4,
    )


def line_handle(label: str, colour=style.INK, **line) -> Line2D:
    """A legend entry for a line."""
    return Line2D([], [], label=label, color=colour, **line)


def bar_handle(label: str, colour, alpha: float = 1) -> Patch:
    """A legend entry for a bar or an area."""
    return Patch(label=label, facecolor=colour, alpha=alpha, linewidth=0)


def measure_handles(measures: list[str]) -> list[Line2D]:
    """A legend entry per measure, in its colour."""
    looks = [style.MEASURES[measure] for measure in measures]
    return [line_handle(look.label, look.colour) for look in looks]


def model_marker(model: str, models: list[str], colour) -> dict:
    """The marker of one of `models`, as keywords of a plot."""
    return {
        "marker": style.marker(model),
        "markerfacecolor": style.tinted(colour, style.model_tints(models)[model]),
        "markeredgecolor": colour,
        "markeredgewidth": 0.8,
    }


def model_handles(models: list[str], colour="0.3") -> list[Line2D]:
    """A legend entry per model, in grey: its colour in a panel is the measure's."""
    return [
        line_handle(model, colour, linestyle="none", **model_marker(model, models, colour))
        for model in models
    ]


OPTIMUM_HANDLE = line_handle("optimal learning (lowest test loss)", **style.EPOCH_LINE)
BAYES_HANDLE = Line2D([], [], label="Bayes-optimal loss", **style.BAYES_LINE)
