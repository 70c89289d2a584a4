"""What the figures of density share: colours, intervals over seeds, axes of densities, words.

A figure has one meaning of colour: the kind of strings, the embedding, or the measure. Line styles
are kernels. No measure has the colours of strings and of embeddings, and colour-blind readers can
distinguish those of a figure, which also have markers of their own.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from palimpsest.density.kinds import (
    EXPONENTIAL,
    GAUSSIAN,
    HIDDEN,
    LEAKED,
    NEVER,
    NGRAMS,
    PLACEBO,
    TRAINED,
    UNSEEN,
)
from palimpsest.figures import curves


@dataclass(frozen=True)
class Look:
    """The label, the colour and the marker of a kind of strings or of an embedding."""

    label: str
    colour: str
    marker: str

    def handle(self, label: str | None = None, **line) -> Line2D:
        """A legend entry, with another label if one is given."""
        look = {"color": self.colour, "marker": self.marker, "linestyle": "none", "markersize": 4.5}
        return Line2D([], [], label=label or self.label, **{**look, **line})


STRINGS = {
    LEAKED: Look("leaked", "#8031A7", "o"),
    PLACEBO: Look("placebo: as if leaked", "0.58", "D"),
    NEVER: Look("never leaked", "0.15", "s"),
}
EMBEDDINGS = {
    HIDDEN: Look("hidden states", "#661100", "o"),
    NGRAMS: Look("n-grams", "#CFA100", "^"),
}
OTHER_EMBEDDING = Look("", "#661100", "o")
KERNELS = {GAUSSIAN: "-", EXPONENTIAL: (0, (4, 1.5))}
TRAINED_OR_NOT = {TRAINED: "trained strings", UNSEEN: "strings never trained on"}
ZERO = {"color": "0.6", "linewidth": 0.8, "zorder": 1}
ENDS = ["mean", "lower", "upper"]
BARS = {"elinewidth": 0.9, "markersize": 4, "markeredgewidth": 0.8}
ACCURACY_LABEL = "accuracy\n(share, 0 to 1)"
PERPLEXITY_LABEL = "perplexity per\ntoken (log scale)"
PERCENT = "95\N{NO-BREAK SPACE}%"
TICKS = np.array([1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500])


def of_embedding(name: str) -> Look:
    """The look of an embedding; that of a text has the name of its model."""
    return EMBEDDINGS.get(name, OTHER_EMBEDDING)


def reach(found: pd.DataFrame) -> np.ndarray:
    """The distances float[2, rows] from the means to the ends; 0 where there is no interval."""
    ends = np.nan_to_num([found["mean"] - found["lower"], found["upper"] - found["mean"]])
    return np.clip(ends, 0, None)  # an end that is the mean may differ from it by rounding


def draw_means(axes: Axes, places: Iterable[float], found: pd.DataFrame, **look) -> None:
    """Means with vertical bars at places on the x axis, joined by a line."""
    axes.errorbar(list(places), found["mean"], reach(found), **{**BARS, **look})


def draw_row(axes: Axes, place: float, found: pd.Series, **look) -> None:
    """One mean with a horizontal bar, at a place on the y axis."""
    ends = reach(found.to_frame().T)
    axes.errorbar([found["mean"]], [place], xerr=ends, **{**BARS, "linestyle": "none", **look})


def seeds_note(table: pd.DataFrame) -> str:
    """One sentence on the meaning of points and bars."""
    n = table["seed"].nunique()
    if n == 1:
        return "One seed: points without bars."
    return f"Points: means over {n} seeds; bars: {PERCENT} intervals over the seeds."


def setting(table: pd.DataFrame) -> str:
    """The kernel and the bandwidth of a table that has one of each."""
    first = table.iloc[0]
    return f"{first['kernel']} kernel, bandwidth {first['bandwidth']:g}"


def name_rows(axes: Axes, names: list[str]) -> None:
    """A y axis of categories from the top, with thin lines between the categories."""
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.grid(False, axis="y")
    for place in range(1, len(names)):
        axes.axhline(place - 0.5, color="0.92", linewidth=0.6, zorder=0)


def correlation_axis(axes: Axes) -> None:
    """An x axis for correlations, with room for markers at both ends."""
    axes.set_xlim(-1.08, 1.08)
    axes.set_xticks([-1, -0.5, 0, 0.5, 1], ["−1", "", "0", "", "1"])


def hollow(label: str, filled: bool, marker: str = "o") -> Line2D:
    """A grey legend entry for a marker that is filled or hollow."""
    fill = "0.35" if filled else "white"
    return curves.line_handle(
        label, "0.35", linestyle="none", marker=marker, markersize=4.5, markerfacecolor=fill
    )


def perplexity_axis(axes: Axes, values: pd.DataFrame) -> None:
    """A logarithmic y axis for perplexities, around all means and ends in `values`."""
    low, high = np.nanmin(values) / 1.06, np.nanmax(values) * 1.06
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    shown = TICKS[(low <= TICKS) & (high >= TICKS)]
    axes.yaxis.set_major_locator(FixedLocator(shown[:: 1 + len(shown) // 8]))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def share_axis(axes: Axes, values: pd.DataFrame) -> None:
    """A y axis for shares, from 0 to the highest end in `values`."""
    axes.set_ylim(-0.03, min(1.03, 1.08 * np.nanmax(values) + 0.03))


def of_shares(found: pd.DataFrame) -> pd.DataFrame:
    """Intervals of shares, without what is below 0 or above 1."""
    return found.assign(**found[ENDS].clip(0, 1))
