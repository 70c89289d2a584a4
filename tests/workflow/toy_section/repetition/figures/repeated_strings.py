"""The share of training strings that are repeated."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.repetition.counting import REPEATED

FIGURE = Figure(
    __name__,
    order=10,
    chapter="repetition",
    title="Repeated strings",
    caption=(
        "The share of the distinct training strings that occur more than once, for each seed. See "
        "whether it is far above 0: repeated strings are what deduplication removes."
    ),
    tables=(REPEATED,),
)


@style.styled
def repeated_strings(table: pd.DataFrame) -> plt.Figure:
    """The share of repeated strings for each seed, from a table `repeated` of one language."""
    figure = elements.figure_of(2.4, f"Repeated strings of language {table['language'].iloc[0]}")
    axes = figure.subplots()
    axes.bar(table["seed"].astype(str), table["share_repeated"], color="0.3")
    axes.set(xlabel="seed", ylabel="share of the distinct strings", ylim=(0, 1))
    return figure
