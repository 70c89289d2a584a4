"""Markers of training strings; the fill shows how many copies are in the training data."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.libraries import np, pd, plt

# Smallest number of copies of a class -> strength of the marker's fill.
COPIES = {1: 0.0, 2: 0.3, 4: 0.65, 8: 1.0}
MARKER = 4.5


def copies_class(count: pd.Series) -> np.ndarray:
    bounds = np.array(list(COPIES))
    return bounds[np.searchsorted(bounds, count, side="right") - 1]


def filled(colour, least: int) -> tuple[float, float, float]:
    return style.tinted(colour, COPIES[least])


def copies_handles(count: pd.Series) -> list:
    """A legend entry for each class of copies that occurs."""
    bounds, present = list(COPIES), set(copies_class(count))
    return [
        shape_handle(copies_in_words(least, after), "o", markerfacecolor=filled("0.3", least))
        for least, after in zip(bounds, [*bounds[1:], None], strict=True)
        if least in present
    ]


def shape_handle(label: str, marker: str, **look) -> plt.Line2D:
    return elements.marker_handle(
        label, "0.3", marker, filled=False, size=MARKER, markeredgewidth=0.7, **look
    )


def copies_in_words(least: int, after: int | None) -> str:
    """A class of copies in words; `after` is the first number of copies of the next class."""
    if least == 1:
        return "once in the training data"
    return f"{least} to {after - 1} times" if after else f"{least} times and more"
