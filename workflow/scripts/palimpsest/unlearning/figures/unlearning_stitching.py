"""Stitched methods: the erase phase of one method and the repair phase of another."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.unlearning import kinds
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.figures import seeds as by_seed
from palimpsest.unlearning.figures.unlearning_scores import SCORES, averaged, draw_ideal
from palimpsest.unlearning.paper import PAPER

FIGURE = Figure(
    __name__,
    order=70,
    chapter="unlearning",
    title="Methods put together from two others",
    caption=(
        "Methods that forget with the first phase of one method and repair with that of "
        "another, beside these two. Where the filled marker is to the right of both hollow "
        "ones below it, the phases are better together."
    ),
    numbers="16",
    paper=PAPER,
    tables=(kinds.SUMMARY,),
)
TITLE = "Methods put together from two others"
WANTED = ("fanchuan-seif", "kookmin-seif", "seif-finetune")
QUANTITIES = ("forgetting_quality", "final_score")
ROW = 0.2


@style.styled
def unlearning_stitching(summary: pd.DataFrame) -> plt.Figure:
    """Forgetting quality and final score of methods made of two others, and of these two.

    Source: Are we making progress in unlearning?, appendix A.10, figure 16.
    """
    shown = method_rows.of_main_setup(summary[summary["quantity"].isin(QUANTITIES)])
    groups = stitched(shown["method"])
    if not groups:
        wanted = ", ".join(WANTED)
        return method_rows.without_panels(
            TITLE, shown, f"No method here is put together from two others. Add methods such as "
            f"{wanted} to `unlearning/methods`, and both methods of each pair.",
        )  # fmt: skip
    n_rows = sum(len(group) for group in groups)
    heights = dict.fromkeys(shown["model"].unique(), 0.65 + ROW * n_rows + 0.1 * len(groups))
    figure, parts = method_rows.figure_of_models(TITLE, shown, heights, 0.75)
    for model, part in parts:
        draw_groups(part, shown[shown["model"] == model], groups)
    colour = style.SETUPS[shown["setup"].iloc[0]].colour
    handles = [
        elements.marker_handle("put together", colour, size=5),
        elements.marker_handle(
            "the method of a phase", colour, filled=False, size=4.2, markeredgewidth=0.9
        ),
        method_rows.ideal_handle("retraining"),
    ]
    seeds = by_seed.seeds_in(shown)
    note = f"Set-up {style.SETUPS[shown['setup'].iloc[0]].label}. " + (
        by_seed.note(seeds) or method_rows.repetitions_note(int(shown["n_repetitions"].max()))
    )
    elements.legend(figure, handles, note)
    return figure


def stitched(names: pd.Series) -> list[tuple[str, str, str]]:
    """Methods that are named after two others, joined by a hyphen, with these two."""
    present = list(dict.fromkeys(names))
    found = []
    for name in present:
        words = name.split("-")
        for cut in range(1, len(words)):
            first, second = "-".join(words[:cut]), "-".join(words[cut:])
            if first in present and second in present:
                found.append((name, first, second))
    return found


def draw_groups(figure: plt.Figure, summary: pd.DataFrame, groups: list[tuple]) -> None:
    panels = figure.subplots(1, len(QUANTITIES), sharey=True)
    rows = [(name, group[0]) for group in groups for name in group]
    places = [row + 0.5 * (row // 3) for row in range(len(rows))]
    means = averaged(summary)
    highest = max(summary["mean"].max(), means["mean"].max())
    for axes, quantity in zip(panels, QUANTITIES, strict=True):
        found = {row.method: row for row in means[means["quantity"] == quantity].itertuples()}
        each = summary[summary["quantity"] == quantity]
        draw_ideal(axes, each)
        for (name, whole), y in zip(rows, places, strict=True):
            row = found[name]
            look = method_rows.setup_look(row.setup, name, () if name == whole else (name,))
            axes.errorbar(
                row.mean, y, xerr=method_rows.reach(row), linestyle="none", elinewidth=0.8,
                **{**look, "markersize": 5 if name == whole else 4.2},
            )  # fmt: skip
            if each["seed"].nunique() > 1:
                values = each.loc[each["method"] == name, "mean"]
                by_seed.draw_seeds(axes, values, y + 0.25, look)
        method_rows.unit_axis(axes, SCORES[quantity].replace("\n", " "), highest)
        axes.grid(axis="y", visible=False)
        axes.tick_params(axis="y", length=0)
    names = [name if name == whole else f"   {name}" for name, whole in rows]
    panels[0].set_yticks(places, names)
    panels[0].set_ylim(places[-1] + 0.6, -0.6)
