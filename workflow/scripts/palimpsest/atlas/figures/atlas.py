"""The figure of the atlas: every cheap measure against exact retraining."""

from __future__ import annotations

from palimpsest.atlas import kinds
from palimpsest.atlas.figures.ranks import draw_ranks
from palimpsest.atlas.kinds import AMOUNT, START
from palimpsest.figures import style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt

FIGURE = Figure(
    __name__,
    order=10,
    chapter="atlas",
    title="Cheap measures against exact retraining",
    caption=(
        "How well each measure orders the training strings as exact retraining does, with the cost "
        "beside its name: 1 is the training of the model. See which measures come near the ceiling "
        "(dashed), which is retraining once more, and that placebos (crosses) are near 0."
    ),
    tables=(kinds.ATLAS,),
)
QUESTIONS = {AMOUNT: "how much a string is memorised", START: "when memorisation starts"}


@style.styled
def atlas(table: pd.DataFrame) -> plt.Figure:
    """Rank correlations with exact retraining of single strings, from tables `atlas`."""
    return draw_ranks(table, QUESTIONS, "The atlas")
