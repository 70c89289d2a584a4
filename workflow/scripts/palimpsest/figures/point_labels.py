"""Labels near points and at the ends of curves, placed so that they do not overlap."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from palimpsest.figures import style
from palimpsest.figures.libraries import np, plt

RINGS = (5.5, 9, 13, 17, 22)  # points on paper: possible distances between a label and its marker
DIRECTIONS = 12
SIZE = 6.0  # points


def label_points(axes: plt.Axes, points: list[tuple[str, float, float]], colour=style.INK) -> None:
    """Put labels near their points. If there is room, labels overlap neither points nor labels.

    The figure's layout and limits must be final, because distances are measured on paper.

    Parameters
    ----------
    points : label (a number or a short word), x and y of each
    """
    to_paper = 72 / axes.figure.dpi
    box = axes.get_window_extent()
    page = (np.round(box.min * to_paper), np.round(box.max * to_paper))
    places = np.array([axes.transData.transform((x, y)) for _, x, y in points]) * to_paper
    places = np.round(places)
    taken: list[tuple[np.ndarray, np.ndarray]] = []
    for (label, x, y), place in zip(points, places, strict=True):
        size = np.array([3.8 * len(label) + 1, SIZE])
        offset = free_offset(place, size, places, taken, page)
        taken.append((place + offset, size))
        far = np.hypot(*offset) > RINGS[1]
        axes.annotate(
            label, (x, y), xytext=offset, textcoords="offset points", ha="center",
            va="center", fontsize=SIZE, color=colour, zorder=5,
            arrowprops={"arrowstyle": "-", "color": "0.6", "linewidth": 0.4, "shrinkA": 2,
                        "shrinkB": 1} if far else None,
        ).set_in_layout(False)  # fmt: skip


def free_offset(
    place: np.ndarray,
    size: np.ndarray,
    points: np.ndarray,
    taken: list[tuple[np.ndarray, np.ndarray]],
    page: tuple[np.ndarray, np.ndarray],
) -> tuple[float, float]:
    """The offset of a label from its point: the nearest free place, or else the least crowded.

    All arguments are in points of paper, float[2] or float[points, 2]. `taken` has the centre and
    the size of every label that already has a place.
    """
    turns = 2 * np.pi * (np.arange(DIRECTIONS) / DIRECTIONS + 1 / 8)
    best, fewest = (0.0, 0.0), np.inf
    for radius in RINGS:
        for turn in turns:
            offset = np.round(radius * np.array([np.cos(turn), np.sin(turn)]))
            centre = place + offset
            in_the_way = int((np.abs(points - centre) < size / 2 + 1.5).all(axis=1).sum())
            in_the_way += sum(
                bool((np.abs(other - centre) < (size + its_size) / 2).all())
                for other, its_size in taken
            )
            outside = (centre - size / 2 < page[0]).any() or (centre + size / 2 > page[1]).any()
            crowd = in_the_way + 2 * outside
            if crowd == 0:
                return tuple(offset)
            if crowd < fewest:
                best, fewest = tuple(offset), crowd
    return best


def label_ends(axes: plt.Axes, ends: list[tuple[str, float, float]]) -> None:
    """Put labels to the right of the ends of curves, one above the other.

    The labels alternate between two columns, so that twice as many fit.
    """
    to_paper = 72 / axes.figure.dpi
    ends = sorted(ends, key=lambda end: end[2])
    places = np.array([axes.transData.transform((x, y))[1] for _, x, y in ends]) * to_paper
    heights = spread_out(np.round(places), SIZE / 2)
    for index, ((label, x, y), place, height) in enumerate(zip(ends, places, heights, strict=True)):
        axes.annotate(
            label, (x, y), xytext=(9 + 13 * (index % 2), height - np.round(place)), ha="left",
            textcoords="offset points", va="center", fontsize=SIZE, annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": "0.75", "linewidth": 0.4, "shrinkA": 0,
                        "shrinkB": 1, "relpos": (0, 0.5)},
        ).set_in_layout(False)  # fmt: skip


def spread_out(places: np.ndarray, gap: float) -> np.ndarray:
    """Move ascending places as little as possible, so that neighbours have at least a gap.

    Source: least squares under order constraints, solved by pooling adjacent violators.
    """
    wanted = places - gap * np.arange(len(places))
    blocks: list[list[float]] = []
    for value in wanted:
        blocks.append([value])
        while len(blocks) > 1 and np.mean(blocks[-2]) > np.mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    means = [np.mean(block) for block in blocks for _ in block]
    return np.array(means) + gap * np.arange(len(places))


def after_layout(
    figure: plt.Figure, panels: Iterable[tuple[plt.Axes, list]], label: Callable = label_points
) -> plt.Figure:
    figure.draw_without_rendering()
    for axes, points in panels:
        label(axes, points)
    return figure
