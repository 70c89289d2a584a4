"""What the forgetting quality depends on."""

from __future__ import annotations

from palimpsest.figures import elements, point_labels, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.unlearning import kinds
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.figures import seeds as by_seed
from palimpsest.unlearning.paper import PAPER

FIGURE = Figure(
    __name__,
    order=130,
    chapter="unlearning",
    title="What the forgetting quality depends on",
    caption=(
        "The forgetting quality when attacks are judged on the models they were fitted on and "
        "on others, and with more models, a larger pool, and more repetitions. See whether "
        "the order of the methods stays the same."
    ),
    numbers="19 to 21",
    paper=PAPER,
    tables=(kinds.EFFECTS,),
)
EFFECTS = {
    "n": "models that evaluate,\nof each kind (N)",
    "pool": "pool of the bootstrap\n(models of each kind, K)",
    "repetitions": "repetitions of the bootstrap (E)",
}
CURVES_HEIGHT = 4.4  # inches, of all panels with curves


@style.styled
def unlearning_effects(effects: pd.DataFrame) -> plt.Figure:
    """How the forgetting quality depends on the attacker and on the numbers of models.

    Source: Are we making progress in unlearning?, appendices A.13 to A.15, figures 19 to 21.
    """
    rows = {
        model: method_rows.with_ends(by_quality(of_model), of_model["method"])
        for model, of_model in effects.groupby("model", sort=False)
    }
    heights = {
        model: max(CURVES_HEIGHT, 0.5 + method_rows.ROW_HEIGHT * len(names))
        for model, names in rows.items()
    }
    figure, parts = method_rows.figure_of_models(
        "What the forgetting quality depends on", effects, heights, 0.7
    )
    drawn = []
    for model, part in parts:
        drawn += draw_effects(part, effects[effects["model"] == model], rows[model])
    handles = [
        elements.marker_handle(
            "attacker evaluated on the models it was fitted on", style.INK, filled=False,
            size=method_rows.MARKER,
        ),
        elements.marker_handle("on other models", style.INK, size=method_rows.MARKER),
        elements.line_handle("doing nothing, retraining", style.END),
    ]  # fmt: skip
    seeds = by_seed.seeds_in(effects)
    over = f"{len(seeds)} seeds" if len(seeds) > 1 else "the repetitions"
    note = f"Markers and lines: mean over {over}; bars and bands: smallest to largest value."
    if len(seeds) > 1:
        note += " Upright strokes: the seeds, each a mean over its repetitions."
    elements.legend(figure, handles, note)
    return point_labels.after_layout(figure, drawn, point_labels.label_ends)


def separate(effects: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The values whose spread is shown: those of the seeds, or with one seed all repetitions."""
    if effects["seed"].nunique() == 1:
        return effects
    return by_seed.of_seeds(effects, keys, ["forgetting_quality"])


def by_quality(effects: pd.DataFrame) -> list[str]:
    return method_rows.best_first(
        effects.groupby("method", sort=False)["forgetting_quality"].mean()
    )


def draw_effects(figure: plt.Figure, effects: pd.DataFrame, rows: list[str]) -> list:
    """Returns the panels of curves, each with the end points of the methods' curves."""
    curved = [effect for effect in EFFECTS if (effects["effect"] == effect).any()]
    left, right = figure.subfigures(1, 2, width_ratios=[1.25, 1])
    draw_attackers(left.subplots(), effects[effects["effect"] == "attacker"], rows)
    if not curved:
        return []
    drawn = []
    panels = right.subplots(len(curved), 1, squeeze=False)[:, 0]
    for axes, effect in zip(panels, curved, strict=True):
        of_effect = effects[effects["effect"] == effect]
        drawn.append((axes, draw_curves(axes, by_number(of_effect), rows)))
        axes.set_xlabel(EFFECTS[effect])
        end = method_rows.unit_end(of_effect["forgetting_quality"].max())
        axes.set_ylim(-0.04 * end, 1.04 * end)
        axes.set_yticks(np.linspace(0, end, 5), method_rows.unit_ticks(end))
    right.supylabel(method_rows.QUALITY)
    return drawn


def draw_attackers(axes: plt.Axes, attackers: pd.DataFrame, rows: list[str]) -> None:
    if attackers.empty:
        axes.text(0.5, (len(rows) - 1) / 2, "too few models\nto hold some out", ha="center")
    several = attackers["seed"].nunique() > 1
    values = separate(attackers, ["method", "attacker"])
    for (method, attacker), found in values.groupby(["method", "attacker"], sort=False):
        mean, ends = elements.whiskers(found["forgetting_quality"])
        colour = style.END if method in method_rows.ENDS else style.INK
        y = rows.index(method) + (0.14 if attacker == "same" else -0.14)
        axes.errorbar(
            mean, y, xerr=ends, linestyle="none", elinewidth=0.7, color=colour, marker="o",
            markersize=3.8, markerfacecolor="white" if attacker == "same" else colour,
            markeredgewidth=0.9,
        )  # fmt: skip
        if several:
            axes.plot(
                found["forgetting_quality"], [y] * len(found), linestyle="none", marker="|",
                markersize=4, color=colour, markeredgewidth=0.7,
            )  # fmt: skip
    method_rows.name_rows(axes, rows)
    method_rows.part_ends(axes, rows)
    numbers = method_rows.numbered(method_rows.methods_in(rows))
    names = [
        f"{row} {numbers[row]}" if row in numbers else method_rows.END_LABELS[row] for row in rows
    ]
    axes.set_yticks(range(len(rows)), names)
    method_rows.unit_axis(
        axes, method_rows.QUALITY, 1 if attackers.empty else attackers["forgetting_quality"].max()
    )


def by_number(effects: pd.DataFrame) -> pd.DataFrame:
    """Mean, min and max of the forgetting quality at each value of the varied number, by method.

    They are over the seeds, or over the repetitions of a single seed.
    """
    keys = ["method", "level"]
    values = separate(effects, keys)
    found = values.groupby(keys, sort=False)["forgetting_quality"].agg(["mean", "min", "max"])
    return found.reset_index().sort_values("level", kind="stable")


def draw_curves(axes: plt.Axes, varied: pd.DataFrame, rows: list[str]) -> list:
    """Draw a curve per method; returns the end points of the curves."""
    ends = []
    numbers = method_rows.numbered(method_rows.methods_in(rows))
    for method, curve in varied.groupby("method", sort=False):
        colour = style.END if method in method_rows.ENDS else style.INK
        axes.fill_between(
            curve["level"], curve["min"], curve["max"], color=colour, alpha=0.06, linewidth=0
        )
        axes.plot(
            curve["level"], curve["mean"], color=colour, linewidth=0.8, marker=".", markersize=3
        )
        last = curve.iloc[-1]
        if method in numbers:
            ends.append((numbers[method], last["level"], last["mean"]))
    values = sorted(varied["level"].unique())
    axes.set_xscale("log", base=2)
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()
    room = (values[-1] / values[0]) ** 0.25 if len(values) > 1 else 2
    axes.set_xlim(values[0] / room**0.2, values[-1] * room)
    return ends
