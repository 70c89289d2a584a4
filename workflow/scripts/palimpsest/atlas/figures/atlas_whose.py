"""The figure of influence: which other string lowered the loss of a string."""

from __future__ import annotations

from palimpsest.atlas import kinds
from palimpsest.atlas.figures.ranks import draw_ranks
from palimpsest.atlas.kinds import APART, CROSS, HALVES, UNSEEN
from palimpsest.figures import style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt

FIGURE = Figure(
    __name__,
    order=20,
    chapter="atlas_whose",
    title="Whose influence",
    caption=(
        "How well measures of influence agree with exact retraining: on which single removal "
        "raises the loss of a string, and on its loss after training on random halves. See how far "
        "apart these are, and what knowing only whether the string itself is in a half reaches."
    ),
    tables=(kinds.ATLAS,),
)
QUESTIONS = {
    CROSS: "whose removal raises a loss",
    HALVES: "losses on random halves (linear datamodelling score)",
    APART: "the same, halves with the string and without it apart",
    UNSEEN: "the same, of strings that no training saw",
}


@style.styled
def atlas_whose(table: pd.DataFrame) -> plt.Figure:
    """Rank correlations with exact retraining of pairs of strings, from tables `atlas`."""
    return draw_ranks(table, QUESTIONS, "Influence")
