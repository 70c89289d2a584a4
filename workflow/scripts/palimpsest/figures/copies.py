"""Markers of training strings; the fill shows how many copies are in the training data."""

import numpy as np
import pandas as pd

from palimpsest.figures import curves, style

# Smallest number of copies of a class -> strength of the marker's fill.
COPIES = {1: 0.0, 2: 0.3, 4: 0.65, 8: 1.0}
MARKER = 4.5


def copies_class(count: pd.Series) -> np.ndarray:
    """The class in `COPIES` of each count."""
    bounds = np.array(list(COPIES))
    return bounds[np.searchsorted(bounds, count, side="right") - 1]


def filled(colour, least: int) -> tuple[float, float, float]:
    """The fill of a marker of a class of copies."""
    return style.tinted(colour, COPIES[least])


def copies_handles(count: pd.Series) -> list:
    """A legend entry for each class of copies that occurs."""
    bounds, present = list(COPIES), set(copies_class(count))
    return [
        curves.line_handle(
            copies_in_words(least, after), "0.3", linestyle="none", marker="o",
            markersize=MARKER, markerfacecolor=filled("0.3", least), markeredgewidth=0.7,
        )
        for least, after in zip(bounds, [*bounds[1:], None], strict=True)
        if least in present
    ]  # fmt: skip


def copies_in_words(least: int, after: int | None) -> str:
    """A class of copies, up to but not including `after`, for a reader."""
    if least == 1:
        return "once in the training data"
    return f"{least} to {after - 1} times" if after else f"{least} times and more"
