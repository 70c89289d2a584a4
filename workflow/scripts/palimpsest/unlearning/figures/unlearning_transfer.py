"""Methods on another problem than that of their tuning."""

from __future__ import annotations

from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.unlearning import kinds
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.figures import seeds as by_seed
from palimpsest.unlearning.paper import PAPER

FIGURE = Figure(
    __name__,
    order=75,
    chapter="unlearning",
    title="Methods on another problem",
    caption=(
        "The score on a language on which a method was not tuned, with its settings as they "
        "are (hollow) and with learning rates chosen on other strings of this language "
        "(filled). A filled marker far to the right needed the tuning."
    ),
    numbers="7",
    paper=PAPER,
    tables=(kinds.TRANSFER,),
)
LABELS = {"direct": "as it is", "light": "with light tuning"}
OFFSETS = {"direct": -0.16, "light": 0.16}  # of a row


@style.styled
def unlearning_transfer(transfer: pd.DataFrame) -> plt.Figure:
    """The scores of all methods on another problem, directly and with light tuning.

    Source: Are we making progress in unlearning?, section 6, Q5, figure 7.
    """
    rows = {
        model: method_rows.best_first(of_model.groupby("method")["final_score"].max())
        for model, of_model in transfer.groupby("model", sort=False)
    }
    heights = {model: 0.6 + 0.2 * len(names) for model, names in rows.items()}
    figure, parts = method_rows.figure_of_models(
        "Methods on another problem", transfer, heights, 0.6
    )
    for model, part in parts:
        draw_scores(part.subplots(), transfer[transfer["model"] == model], rows[model])
    handles = [
        elements.marker_handle(LABELS[way], by_seed.COLOUR, filled=way == "light", size=4.2)
        for way in LABELS
    ]
    seeds = by_seed.seeds_in(transfer)
    note = by_seed.note(seeds) or "One seed, so without an interval."
    elements.legend(figure, handles, note)
    return figure


def draw_scores(axes: plt.Axes, transfer: pd.DataFrame, rows: list[str]) -> None:
    means = intervals_over_seeds(transfer, ["method", "tuning"], "final_score")
    for row in means.reset_index().itertuples():
        y = rows.index(row.method) + OFFSETS[row.tuning]
        look = {
            "color": by_seed.COLOUR,
            "marker": "o",
            "markersize": 4.2,
            "markerfacecolor": by_seed.COLOUR if row.tuning == "light" else "white",
            "markeredgewidth": 0.9,
        }
        reach = method_rows.reach(row)
        axes.errorbar(row.mean, y, xerr=reach, linestyle="none", elinewidth=0.8, **look)
        is_of_row = (transfer["method"] == row.method) & (transfer["tuning"] == row.tuning)
        values = transfer.loc[is_of_row, "final_score"]
        if len(values) > 1:
            by_seed.draw_seeds(axes, values, y, look)
    method_rows.name_rows(axes, rows)
    axes.tick_params(axis="y", length=0)
    highest = np.nanmax([transfer["final_score"].max(), means["upper"].max()])
    method_rows.unit_axis(axes, "final score (0 to 1)", highest)
