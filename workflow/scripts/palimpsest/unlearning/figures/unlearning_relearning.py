"""Losses while the forget strings are learned again, and with 4-bit weights."""

from __future__ import annotations

import math
import textwrap

from palimpsest.figures import elements, point_labels, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt, ticker
from palimpsest.unlearning import kinds
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.figures import seeds as by_seed
from palimpsest.unlearning.figures.seeds import GAP, RELEARNING, ROUNDED, UNLEARNING, draw_means

FIGURE = Figure(
    __name__,
    order=60,
    chapter="unlearning",
    title="How fast what was forgotten comes back",
    caption=(
        "The loss of the forget strings while models are trained on them again (left), and "
        "after rounding the weights to 4 bits (right). See whether a method falls like the "
        "dashed curve of retraining or the dotted one of the originals, and which are below "
        "the diagonal."
    ),
    tables=(kinds.STAGES,),
    some_empty=(kinds.STAGES,),
)
RELEARNING_ENDS = {
    "none": {"color": "0.45", "linewidth": 1.0, "linestyle": style.LINES["without"]},
    "retrain": {"color": style.INK, "linewidth": 1.0, "linestyle": style.LINES["test"]},
}
RELEARN_COLUMNS, RELEARN_HEIGHT = 3, 1.15
RELEARNING_TITLE = "How fast what was forgotten comes back"


@style.styled
def unlearning_relearning(stages: pd.DataFrame) -> plt.Figure:
    """Forget losses while the forget set is learned again, and with weights of 4 bits.

    Source: the figure is Palimpsest's own.
    """
    again, rounded = stages[stages["stage"] == RELEARNING], against_rounded(stages)
    if again.empty:
        return method_rows.without_panels(
            RELEARNING_TITLE, stages, "No model was trained on the forget set again: set "
            "`unlearning/relearn`.",
        )  # fmt: skip
    names = {model: method_rows.methods_in(of["method"]) for model, of in again.groupby("model")}
    names = {model: methods or ["none"] for model, methods in names.items()}
    heights = {
        model: max(2.9, 0.45 + RELEARN_HEIGHT * math.ceil(len(methods) / RELEARN_COLUMNS))
        for model, methods in names.items()
    }
    figure, parts = method_rows.figure_of_models(RELEARNING_TITLE, stages, heights, 0.9)
    drawn = []
    for model, part in parts:
        of_model = rounded[rounded["model"] == model]
        left, right = part.subfigures(1, 2, width_ratios=[1.75, 1])
        draw_relearning(left, again[again["model"] == model], names[model])
        if not of_model.empty:
            axes, places = draw_rounded(right, of_model)
            numbered = method_rows.methods_in(names[model])
            drawn.append((axes, method_rows.labelled(numbered, places)))
    handles = [
        elements.line_handle("the method", **GAP),
        elements.line_handle("retrain (the ideal)", **RELEARNING_ENDS["retrain"]),
        elements.line_handle("none (the original), trained on", **RELEARNING_ENDS["none"]),
    ]  # fmt: skip
    note = (
        "Left: see whether a line falls like that of retraining, or like that of the original "
        "models, which never forgot; the first steps of training raise every loss. Right: numbers "
        "are those of the methods; above the diagonal, rounding raises the loss, and below, "
        "rounding brings strings back."
    )
    seeds = by_seed.seeds_in(stages)
    if len(seeds) > 1:
        note += f" Thick lines and large markers: mean over {len(seeds)} seeds; others: the seeds."
    elements.legend(figure, handles, note)
    return point_labels.after_layout(figure, drawn)


def against_rounded(stages: pd.DataFrame) -> pd.DataFrame:
    """Mean forget losses of every method and seed with full weights and with weights of 4 bits.

    Full weights: at 0 steps of relearning, or else at the end of unlearning.
    """
    keys = ["model", "method", "seed"]
    models = [*keys, "origin", "unlearning_replicate"]
    few = stages[stages["stage"] == ROUNDED].set_index(models)["forget_loss"].rename("rounded")
    relearned = stages[(stages["stage"] == RELEARNING) & (stages["passes"] == 0)]
    last = stages[stages["stage"] == UNLEARNING].sort_values("passes", kind="stable")
    full = pd.concat([last.drop_duplicates(models, keep="last"), relearned])
    full = full.drop_duplicates(models, keep="last").set_index(models)["forget_loss"].rename("full")
    both = few.to_frame().join(full, how="inner")
    return both.groupby(keys, sort=False).mean().reset_index()


def draw_relearning(figure: plt.Figure, again: pd.DataFrame, methods: list[str]) -> None:
    panels = elements.grid_of(figure, len(methods), RELEARN_COLUMNS, sharex=True, sharey=True)
    numbers = method_rows.numbered(method_rows.methods_in(methods))
    for axes, method in zip(panels, methods, strict=True):
        for end, look in RELEARNING_ENDS.items():
            draw_means(axes, again[again["method"] == end], "passes", "forget_loss", look)
        draw_means(axes, again[again["method"] == method], "passes", "forget_loss", GAP)
        name = f"{numbers.get(method, '')} {method}".strip()
        axes.set_title(textwrap.fill(name, 22), fontsize=7)
    elements.whole_ticks(panels[0].xaxis, 4)
    figure.supxlabel("steps on the forget set")
    figure.supylabel("loss of the forget strings\n(nats per token)")


def draw_rounded(figure: plt.Figure, rounded: pd.DataFrame) -> tuple[plt.Axes, pd.DataFrame]:
    """Returns the places of the methods."""
    axes = figure.subplots()
    values = rounded[["full", "rounded"]].to_numpy()
    room = 0.06 * max(np.ptp(values), 0.01)
    ends = values.min() - room, values.max() + room
    axes.plot(ends, ends, **method_rows.IDEAL_LINE)
    several = rounded["seed"].nunique() > 1
    means = rounded.groupby("method", sort=False)[["full", "rounded"]].mean()
    for method, place in means.iterrows():
        colour = style.END if method in method_rows.ENDS else by_seed.COLOUR
        if several:
            of_method = rounded[rounded["method"] == method]
            dots = {"marker": ".", "markersize": 3, "color": colour, "alpha": 0.45}
            elements.draw_dots(axes, of_method["full"], of_method["rounded"], **dots)
        axes.plot(*place, linestyle="none", marker="o", markersize=3.6, color=colour)
    axes.set(xlim=ends, ylim=ends, aspect="equal")
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(ticker.MaxNLocator(4))
    axes.set_xlabel("loss, full weights (nats per token)")
    axes.set_ylabel("loss, 4-bit weights (nats per token)")
    return axes, means
