"""What the figures of profiles share: colours of models and estimators, labels, bands."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from palimpsest.figures import curves, style
from palimpsest.profiles.kinds import DIFFERENCE, DIFFERENCE_IN_DIFFERENCES
from palimpsest.profiles.summaries import by_size

# No measure and no set-up has these colours.
MODELS = "#332288"
ESTIMATORS = {
    DIFFERENCE: style.Look("difference", "#C2A000"),
    DIFFERENCE_IN_DIFFERENCES: style.Look("difference-in-differences", MODELS),
}
# The names of contrasts of one factor, and of none
CONTRASTS = {
    "mean": "mean of all cells",
    "copies": "more minus fewer copies",
    "position": "late minus early",
    "size": "more minus less data",
}
EFFECT = "effect (nats)"
FILLED = "Filled markers: the band excludes 0."
ZERO = {"color": "0.6", "linewidth": 0.8, "zorder": 1}


def colours(table: pd.DataFrame) -> dict[str, tuple[float, float, float]]:
    """The colour of each model, from the smallest (light) to the largest."""
    models = by_size(table)
    return {m: style.tinted(MODELS, (place + 1) / len(models)) for place, m in enumerate(models)}


def banded(axes: Axes, rows: pd.DataFrame, x: str, colour, **line) -> None:
    """A curve of estimates over `x` with its band; filled markers are significant."""
    rows = rows.sort_values(x)
    axes.fill_between(
        rows[x], rows["lower"], rows["upper"], color=colour, alpha=curves.BAND_ALPHA, linewidth=0
    )
    axes.plot(rows[x], rows["estimate"], color=colour, **line)
    for significant, fill in ((True, colour), (False, "white")):
        some = rows[rows["significant"] == significant]
        axes.plot(
            some[x], some["estimate"], "o", markersize=3.5, color=colour, markerfacecolor=fill
        )


def handles(table: pd.DataFrame) -> list[Line2D]:
    """A legend entry for each model."""
    return [curves.line_handle(model, colour) for model, colour in colours(table).items()]


def subject(table: pd.DataFrame) -> str:
    """Language and number of strings, in words."""
    return f"language {table['language'].iloc[0]}, {table['size'].iloc[0]} strings seen once"


def runs_note(table: pd.DataFrame) -> str:
    """On how many runs the estimates rest."""
    n = table["n_seeds"].iloc[0]
    return (
        f"Mean over {n} run{'s' if n > 1 else ''} of each model; bands: simultaneous, 95 %, over "
        "strings."
    )
