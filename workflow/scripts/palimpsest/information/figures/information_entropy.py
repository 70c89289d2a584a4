"""The distribution of the entropy of neurons."""

from __future__ import annotations

from palimpsest.figures import style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.information import kinds
from palimpsest.information.figures.distributions import figure_of_distributions
from palimpsest.information.paper import PAPER

FIGURE = Figure(
    __name__,
    order=10,
    chapter="diversity",
    title="Entropy of neurons",
    caption=(
        "The distribution of the entropy of neurons, by layer (columns), for models that "
        "memorise a shortcut (upper rows: alpha) or strings by heart (lower rows: beta). See "
        "whether entropy falls with alpha and rises with beta, most in the last layer."
    ),
    numbers="8",
    paper=PAPER,
    tables=(kinds.NEURONS,),
)


@style.styled
def information_entropy(table: pd.DataFrame) -> plt.Figure:
    """The entropy of all neurons by share and layer, from tables `neurons` of one language.

    Source: the paper's figure 8.
    """
    rows = table[~table["is_degenerate"]]
    return figure_of_distributions(rows, "entropy", "Entropy of neurons", "entropy (nats)")
