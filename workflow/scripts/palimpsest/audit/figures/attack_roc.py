"""ROC curves of attacks on membership, on logarithmic axes."""

from __future__ import annotations

import itertools

from palimpsest.audit.kinds import SCORES
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.records.roc_curves import judged, roc

FIGURE = Figure(
    __name__,
    order=10,
    chapter="attacks",
    title="How many members each attack finds",
    caption=(
        "The share of members that each attack finds, over the share of other records that it "
        "takes for members; grey: chance. See the left end, and the blind attack (broken), "
        "which sees no model: if it is as good as the others, members differ in kind."
    ),
    tables=(SCORES,),
    drawn_for="records",
)
BLIND = "blind"
LEAST = 0.5  # of one non-member, where the axes begin
COLUMNS = 4
COLOURS = (style.MEASURES["contextual"].colour, *style.OTHER_COLOURS)
BROKEN = {"linestyle": style.LINES["test"], "linewidth": 0.8}


@style.styled
def attack_roc(scores: pd.DataFrame) -> plt.Figure:
    """From the tables `attack_scores` of the targets on one corpus: a panel for each attack."""
    known = judged(scores)
    sides = known.groupby("model")["trained"].nunique()
    known = known[known["model"].map(sides) == 2]
    if known.empty:
        return elements.figure_of(1.0, "No record is known that a model was not trained on")
    attacks, models = (list(dict.fromkeys(known[name])) for name in ("attack", "model"))
    colours = dict(zip(models, itertools.cycle(COLOURS)))
    rows = -(-len(attacks) // COLUMNS)
    title = f"Attacks on membership: {known['language'].iloc[0]}"
    figure = elements.figure_of(1.2 + 1.6 * rows, title)
    panels = elements.panels_in(figure)
    grid = elements.grid_of(panels, len(attacks), COLUMNS, sharex=True, sharey=True)
    curves = dict(list(known.groupby(["attack", "model"], sort=False)))
    n_unseen = (~known["trained"].astype(bool)).groupby([known["attack"], known["model"]]).sum()
    least = LEAST / n_unseen.max()
    chance = np.geomspace(least, 1, 50)
    for axes, attack in zip(grid, attacks, strict=True):
        axes.plot(chance, chance, **style.BAYES_LINE)
        for model in models:
            if attack != BLIND and (BLIND, model) in curves:
                _draw(axes, curves[BLIND, model], color=colours[model], **BROKEN)
            if (attack, model) in curves:
                _draw(axes, curves[attack, model], color=colours[model])
        axes.set(xscale="log", yscale="log", xlim=(least, 1), ylim=(least, 1.1))
        axes.set_title(attack, weight="bold")
    panels.supxlabel("share of records never trained on that are taken for members")
    panels.supylabel("share of members found")
    handles = [
        *(elements.line_handle(model, colour) for model, colour in colours.items()),
        elements.line_handle("blind: texts alone", **BROKEN),
        elements.line_handle("chance", **style.BAYES_LINE),
    ]
    elements.legend(figure, handles)
    return figure


def _draw(axes: plt.Axes, rows: pd.DataFrame, **look) -> None:
    curve = roc(rows["score"].to_numpy(), rows["trained"].to_numpy(dtype=bool))
    axes.step(curve.fpr, curve.tpr, where="post", **look)
