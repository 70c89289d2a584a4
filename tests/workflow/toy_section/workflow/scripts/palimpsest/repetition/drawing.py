"""Drawing repeated strings."""

import pandas as pd
from matplotlib.figure import Figure

from palimpsest.figures import curves, style


@style.styled
def repeated_strings(table: pd.DataFrame) -> Figure:
    """The share of repeated strings for each seed, from a table `repeated` of one language."""
    figure = curves.figure_of(2.4, f"Repeated strings of language {table['language'].iloc[0]}")
    axes = figure.subplots()
    axes.bar(table["seed"].astype(str), table["share_repeated"], color="0.3")
    axes.set(xlabel="seed", ylabel="share of the distinct strings", ylim=(0, 1))
    return figure
