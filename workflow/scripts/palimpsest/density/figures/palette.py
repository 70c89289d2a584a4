"""What the figures of density share: colours, axes and labels.

A figure has one meaning of colour: the kind of strings, the embedding, or the measure. Line styles
are kernels. No measure has the colours of strings and of embeddings, and colour-blind readers can
distinguish those of a figure, which also have markers of their own.
"""

from __future__ import annotations

from palimpsest.density import kinds
from palimpsest.figures import elements
from palimpsest.figures.libraries import np, pd, plt, ticker
from palimpsest.figures.style import Look

STRINGS = {
    kinds.LEAKED: Look("leaked", "#8031A7", "o"),
    kinds.PLACEBO: Look("placebo: as if leaked", "0.58", "D"),
    kinds.NEVER: Look("never leaked", "0.15", "s"),
}
EMBEDDINGS = {
    kinds.HIDDEN: Look("hidden states", "#661100", "o"),
    kinds.NGRAMS: Look("n-grams", "#CFA100", "^"),
}
OTHER_EMBEDDING = Look("", "#661100", "o")
KERNELS = {kinds.GAUSSIAN: "-", kinds.EXPONENTIAL: (0, (4, 1.5))}
TRAINED_OR_NOT = {kinds.TRAINED: "trained strings", kinds.UNSEEN: "strings never trained on"}
CHANCE = {"color": "0.5", "linewidth": 0.7, "linestyle": (0, (1, 2))}
CHANCE_NOTE = "dotted: guessing"
ENDS = ["mean", "lower", "upper"]
ACCURACY_LABEL = "accuracy\n(share, 0 to 1)"
PERPLEXITY_LABEL = "perplexity per\ntoken (log scale)"
TICKS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100, 200, 300, 500)


def of_embedding(name: str) -> Look:
    """The look of an embedding; the embedding of a text has the name of its model."""
    return EMBEDDINGS.get(name, OTHER_EMBEDDING)


def setting(table: pd.DataFrame) -> str:
    first = table.iloc[0]
    return f"{first['kernel']} kernel, bandwidth {first['bandwidth']:g}"


def perplexity_axis(axes: plt.Axes, values: pd.DataFrame) -> None:
    low, high = np.nanmin(values) / 1.06, np.nanmax(values) * 1.06
    axes.set_yscale("log")
    axes.set_ylim(low, high)
    shown = [tick for tick in TICKS if low <= tick <= high]
    axes.yaxis.set_major_locator(ticker.FixedLocator(shown[:: 1 + len(shown) // 8]))
    elements.plain_numbers(axes.yaxis)
    axes.yaxis.set_minor_locator(ticker.NullLocator())


def share_axis(axes: plt.Axes, values: pd.DataFrame) -> None:
    axes.set_ylim(-0.03, min(1.03, 1.08 * np.nanmax(values) + 0.03))


def outcomes_of(table: pd.DataFrame, outcomes: dict) -> dict:
    """Those outcomes, by column, that have values; some languages have no answers."""
    return {
        column: of_column for column, of_column in outcomes.items() if table[column].notna().any()
    }


def draw_chance(axes: plt.Axes, leakage: pd.DataFrame) -> None:
    """A line at the accuracy of guessing, of a table `leakage` with answers."""
    axes.axhline(1 / leakage["n_choices"].astype(float).mean(), **CHANCE)


def of_shares(found: pd.DataFrame) -> pd.DataFrame:
    return found.assign(**found[ENDS].clip(0, 1))
