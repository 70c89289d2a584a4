"""How much does recollection depend on its threshold?"""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.memorisation.paper import PAPER
from palimpsest.memorisation.studies.thresholds import KIND

FIGURE = Figure(
    __name__,
    order=55,
    chapter="thresholds",
    title="Recollection by several thresholds",
    caption=(
        "The share of training strings that recollection calls memorised, for several "
        "thresholds (darker: stricter), after the last miss (left) and from the first epoch "
        "below it (right). How far apart the curves are at the dotted line is the choice of a "
        "threshold."
    ),
    numbers="3",
    paper=PAPER,
    tables=(KIND,),
)
RULES = {"after_last_miss": "after the last miss", "first_crossing": "first crossing"}


@style.styled
def thresholds(study: pd.DataFrame) -> plt.Figure:
    """The share memorised over the epochs: a curve for each threshold, a panel for each rule.

    Source: section 4, RQ3.
    """
    figure = elements.figure_of(3.1, "Recollection by several thresholds", study)
    panels = figure.subplots(1, len(RULES), sharex=True, sharey=True)
    steps = sorted(study["loss_threshold"].unique(), reverse=True)
    colour = style.MEASURES["recollection"].colour
    looks = {
        threshold: style.tinted(colour, 0.3 + 0.7 * place / max(1, len(steps) - 1))
        for place, threshold in enumerate(steps)
    }
    for axes, (rule, words) in zip(panels, RULES.items(), strict=True):
        rows = study[study["start_rule"] == rule]
        for threshold, look in looks.items():
            curve = elements.spread(
                rows[rows["loss_threshold"] == threshold], "epoch", "share_memorised"
            )
            elements.draw_spread(axes, curve, look)
        elements.mark_optima(axes, rows)
        elements.share_axis(axes)
        axes.set_title(words, weight="bold")
        axes.set_xlabel("epoch")
    panels[0].set_ylabel("share memorised (0 to 1)")
    handles = [
        *(elements.line_handle(f"{threshold:g} nats", look) for threshold, look in looks.items()),
        elements.line_handle("optimal learning (lowest test loss)", **style.EPOCH_LINE),
    ]
    elements.legend(figure, handles, elements.spread_note(study))
    return figure
