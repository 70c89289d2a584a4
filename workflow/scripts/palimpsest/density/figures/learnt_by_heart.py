"""Accuracy and loss on test strings after every epoch: when are leaked strings learnt by heart?"""

from __future__ import annotations

from palimpsest.density import kinds
from palimpsest.density.figures import palette
from palimpsest.density.paper import PAPER
from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt, ticker

FIGURE = Figure(
    __name__,
    order=35,
    chapter="leakage",
    title="Epochs until leaked strings are learnt by heart",
    caption=(
        "Accuracy and loss on leaked strings, on placebos and on strings never leaked, by "
        "epoch. See how many epochs leaked strings need to be answered right, and that the "
        "others are not."
    ),
    numbers="16",
    paper=PAPER,
    tables=(kinds.BY_HEART,),
)
CONDITIONS = {(1, 0): "one copy", (1, 3): "one copy and three paraphrases"}
OUTCOMES = {
    "answer_right": (palette.ACCURACY_LABEL, (-0.03, 1.03)),
    "loss": ("loss (nats\nper token)", (0, None)),
}
LINES = {kinds.LEAKED: "-", kinds.PLACEBO: (0, (4, 1.5)), kinds.NEVER: (0, (1, 1.5))}


@style.styled
def learnt_by_heart(by_heart: pd.DataFrame) -> plt.Figure:
    """The share of right answers and the loss by epoch, for leaks with a copy; of one language.

    Source: LMD3, figure 16, where the training data is the test set alone.
    """
    outcomes = palette.outcomes_of(by_heart, OUTCOMES)
    figure = elements.figure_of(
        1.6 + 1.7 * len(outcomes), "Epochs until leaked strings are learnt by heart", by_heart
    )
    shape = len(outcomes), len(CONDITIONS)
    grid = figure.subplots(*shape, sharex=True, sharey="row", squeeze=False)
    for panels, (column, (label, ends)) in zip(grid, outcomes.items(), strict=True):
        for axes, condition in zip(panels, CONDITIONS, strict=True):
            draw_epochs(axes, by_heart, condition, column)
        panels[0].set_ylabel(label)
        panels[0].set_ylim(*ends)
    for axes, words in zip(grid[0], CONDITIONS.values(), strict=True):
        axes.set_title(words)
    for axes in grid[-1]:
        axes.set_xlabel("epoch")
        axes.xaxis.set_major_locator(ticker.MaxNLocator(5, integer=True))
    handles = [
        elements.line_handle(look.label, look.colour, marker=look.marker, linestyle=LINES[role])
        for role, look in palette.STRINGS.items()
    ]
    elements.legend(figure, handles, elements.intervals_note(by_heart))
    return figure


def draw_epochs(
    axes: plt.Axes, by_heart: pd.DataFrame, condition: tuple[int, int], column: str
) -> None:
    """A line for each kind of test strings in the runs of a number of copies and paraphrases."""
    n_copies, paraphrases = condition
    rows = by_heart[
        (by_heart["n_copies"] == n_copies) & (by_heart["paraphrases"] == paraphrases)
    ].astype({column: float})
    for role, look in palette.STRINGS.items():
        own = rows[rows["string_role"] == role]
        if own.empty:
            continue
        means = intervals_over_seeds(own, ["epoch"], column).sort_index()
        means = palette.of_shares(means) if column == "answer_right" else means
        shape = {"color": look.colour, "marker": look.marker, "linestyle": LINES[role]}
        elements.draw_means(axes, means.index, means, **shape)
