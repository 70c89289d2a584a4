"""The distribution of the mutual information of pairs of neurons."""

from __future__ import annotations

from palimpsest.figures import style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.information import kinds
from palimpsest.information.figures.distributions import figure_of_distributions
from palimpsest.information.paper import PAPER

FIGURE = Figure(
    __name__,
    order=20,
    chapter="diversity",
    title="Mutual information of pairs of neurons",
    caption=(
        "The mutual information of pairs of neurons, by layer (columns), for models that "
        "memorise a shortcut (alpha) or strings by heart (beta), and of pairs in a random "
        "order (grey). See whether it rises with alpha and falls with beta, and that grey "
        "stays at 0."
    ),
    numbers="10",
    paper=PAPER,
    tables=(kinds.PAIRS,),
)


@style.styled
def information_pairs(table: pd.DataFrame) -> plt.Figure:
    """The mutual information of all pairs by share and layer, from tables `pairs` of one language.

    Source: the paper's figure 10.
    """
    title = "Mutual information of pairs of neurons"
    label = "mutual\ninformation (nats)"
    return figure_of_distributions(table, "mutual_information", title, label, "permuted")
