"""Where the titles of a figure are."""

from itertools import combinations

import matplotlib.pyplot as plt


def covering_titles(figure: plt.Figure) -> list[tuple[str, str]]:
    """The pairs of titles, of panels, parts and the figure, that cover each other when drawn."""
    figure.draw_without_rendering()
    titles = [own for part in (figure, *figure.subfigs) if (own := part._suptitle)]
    titles += [own for axes in figure.axes for own in (axes.title, axes._left_title)]
    boxes = [
        (text.get_text(), text.get_window_extent().padded(-1)) for text in titles if text.get_text()
    ]
    return [(one, other) for (one, a), (other, b) in combinations(boxes, 2) if a.overlaps(b)]
