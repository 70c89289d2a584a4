"""The figure of a derivation: a string, its tree of rules, and the surprise of each symbol.

The widths of boxes are in characters, so that each box is wide enough for its label. A string that
is too long for the page goes on in the next line.
"""

from __future__ import annotations

import math
import textwrap

from palimpsest.datasets.kinds import DERIVATION_TREE
from palimpsest.datasets.paper import PAPER
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, patches, pd, plt

FIGURE = Figure(
    __name__,
    order=20,
    chapter="languages",
    title="The derivation of a string",
    caption=(
        "A typical string of the language in its most probable derivation; a darker box is a "
        "less probable rule. See in the bars where the string surprises somebody who knows "
        "the language and the symbols before: only there can a model gain by memorising the "
        "string."
    ),
    numbers="12",
    paper=PAPER,
    tables=(DERIVATION_TREE,),
)
CHARACTERS = 125  # of a label, at the width of the panel
PADDING, SYMBOL_PADDING = 0.7, 0.5  # characters around the label of a box and around a symbol
LABEL_SIZE, PROBABILITY_SIZE, SYMBOL_SIZE = 6.5, 6, 8
ROW, BARS, REST = 0.31, 0.65, 0.75  # inches: a level of the tree, the bars, title and notes
TALLEST = 9.0  # inches
DARKEST = 3.0  # nats: a rule of probability 0.05 and less has the darkest box


@style.styled
def derivation(tree: pd.DataFrame) -> plt.Figure:
    """A string below the boxes of its non-terminals, above the surprise of its symbols.

    Source: appendix E, figure 12; the probabilities and the surprise are our own.
    """
    tree = tree.sort_values("node").reset_index(drop=True)
    drawn = tree[tree["begin"] < tree["end"]]
    edges = symbol_edges(drawn)
    lines = lines_of(edges)
    n_rows = drawn["depth"].max() + 1
    row = min(ROW, (TALLEST - REST) / len(lines) / (n_rows + BARS / ROW))
    figure = elements.figure_of(
        REST + len(lines) * row * (n_rows + BARS / ROW),
        f"The derivation of a string of language {tree['language'].iloc[0]}",
    )
    panels = figure.subplots(
        2 * len(lines), 1, squeeze=False, height_ratios=[n_rows, BARS / ROW] * len(lines)
    )[:, 0]
    width = max(edges[last] - edges[first] for first, last in lines)
    for place, (first, last) in enumerate(lines):
        boxes, bars = panels[2 * place : 2 * place + 2]
        line = drawn[(drawn["begin"] < last) & (drawn["end"] > first)]
        visible = edges[first], edges[last]
        draw_boxes(boxes, line, edges, visible, n_rows, written=row > 0.8 * ROW)
        draw_surprise(bars, line, edges)
        bars.set_ylim(0, 1.1 * max(tree["surprise"].max(), 0.1))
        for axes in (boxes, bars):
            axes.set_xlim(edges[first] - 0.2, edges[first] + width + 0.2)
    panels[-1].set_xlabel("the symbols of the string")
    figure.supxlabel(facts(tree), x=0.01, ha="left", fontsize=7)
    return figure


def facts(tree: pd.DataFrame) -> str:
    """The probabilities of the derivation and of the string, in words."""
    rules = tree["probability"].dropna()
    choices, log_prob = int((rules < 1).sum()), tree["log_prob"].iloc[0]
    of = f"the sum over {len(rules)} rules, {choices} of which are chosen among several"
    said = f"Log probability of the string: {log_prob:.2f} nats, {of}."
    if log_prob > np.log(rules).sum() + 1e-9:
        said = (
            f"Log probability of this derivation: {np.log(rules).sum():.2f} nats, {of}. Log "
            f"probability of the string, over all its derivations: {log_prob:.2f} nats."
        )
    if n_empty := int((tree["begin"] == tree["end"]).sum()):
        said += f" Not drawn: {n_empty} symbols that derive nothing."
    return textwrap.fill(said.replace("-", "−"), style.CHARACTERS_PER_LINE)


def symbol_edges(tree: pd.DataFrame) -> np.ndarray:
    """Positions float[symbols + 1] between the symbols, in characters of a label.

    The symbols below a box are made wider if the box would be too narrow for its label.
    """
    widths = np.zeros(tree["end"].max())
    for node in tree.sort_values("depth", ascending=False).itertuples():
        below = slice(node.begin, node.end)
        needed = width_of(node)
        if widths[below].sum() == 0:
            widths[below] = needed / (node.end - node.begin)
        elif widths[below].sum() < needed:
            widths[below] *= needed / widths[below].sum()
    return np.concatenate([[0], widths.cumsum()])


def width_of(node) -> float:
    if math.isnan(node.probability):
        return len(node.symbol) + SYMBOL_PADDING
    return max(len(node.symbol), len(shown(node.probability))) + PADDING


def shown(probability: float) -> str:
    return f"{probability:.2g}"


def lines_of(edges: np.ndarray) -> list[tuple[int, int]]:
    """The first symbol of every line, and the symbol after the line's last."""
    lines, first = [], 0
    for symbol in range(1, len(edges) - 1):
        if edges[symbol + 1] - edges[first] > CHARACTERS:
            lines.append((first, symbol))
            first = symbol
    return [*lines, (first, len(edges) - 1)]


def draw_boxes(
    axes: plt.Axes,
    line: pd.DataFrame,
    edges: np.ndarray,
    visible: tuple[float, float],
    n_rows: int,
    written: bool,
) -> None:
    """The boxes of the non-terminals, level by level, and the symbols in the lowest level.

    The box of a non-terminal with only terminals below reaches down to them. A box that goes on in
    another line is cut; its label is in the middle of what is `visible`, if `written`.
    """
    parents = set(line.loc[line["probability"].notna(), "parent"].dropna())
    for node in line.itertuples():
        left, right = edges[[node.begin, node.end]]
        middle = np.clip([left, right], *visible).mean()
        if math.isnan(node.probability):
            axes.text(middle, n_rows - 0.5, node.symbol, ha="center", va="center",
                      fontsize=SYMBOL_SIZE)  # fmt: skip
            continue
        bottom = node.depth + 1 if node.node in parents else n_rows - 1
        axes.add_patch(
            patches.Rectangle(
                (left, node.depth), right - left, bottom - node.depth, facecolor=shade(node),
                edgecolor=style.INK, linewidth=0.5,
            )
        )  # fmt: skip
        if written:
            write_label(axes, node, middle, (node.depth + bottom) / 2)
    axes.set_ylim(n_rows, 0)
    axes.set_ylabel("rules and their\nprobability")
    axes.set(xticks=[], yticks=[])
    axes.spines[:].set_visible(False)


def shade(node) -> str:
    return str(1 - 0.35 * min(1, -math.log(node.probability) / DARKEST))


def write_label(axes: plt.Axes, node, x: float, y: float) -> None:
    look = {"ha": "center", "color": style.INK}
    axes.text(x, y - 0.03, node.symbol, va="bottom", fontsize=LABEL_SIZE, weight="bold", **look)
    axes.text(x, y + 0.03, shown(node.probability), va="top", fontsize=PROBABILITY_SIZE, **look)


def draw_surprise(axes: plt.Axes, line: pd.DataFrame, edges: np.ndarray) -> None:
    """A bar below each symbol that is not certain."""
    symbols = line[line["surprise"] > 1e-9]
    middle = (edges[symbols["begin"]] + edges[symbols["end"]]) / 2
    axes.bar(
        middle, symbols["surprise"], width=0.7 * np.diff(edges).min(), color="0.3", linewidth=0
    )
    axes.set_ylabel("surprise\n(nats)")
    axes.set_xticks([])
