"""Losses while methods run."""

from __future__ import annotations

import math

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.unlearning import kinds
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.figures import seeds as by_seed
from palimpsest.unlearning.figures.seeds import GAP, RELEARNING, UNLEARNING, draw_means

FIGURE = Figure(
    __name__,
    order=50,
    chapter="unlearning",
    title="What happens while methods run",
    caption=(
        "The share of the gap closed while a method runs, and the losses of retained and of "
        "unseen strings relative to their start. See whether a method passes 1, and whether a "
        "later phase repairs what the first one broke."
    ),
    tables=(kinds.STAGES,),
    some_empty=(kinds.STAGES,),
)
COLUMNS, PANEL_HEIGHT = 4, 1.25
LEAST_GAP = 1e-6  # nats per token
GAP_LIMITS, RATIO_LIMITS = (-0.25, 2.75), (0.875, 2.375)  # so that both start at one height
RATIOS = {
    "retain": {"color": "0.4", "linewidth": 1.1, "linestyle": "-"},
    "unseen": {"color": "0.4", "linewidth": 1.1, "linestyle": style.LINES["test"]},
}
RATIO_LABELS = {"retain": "retained strings", "unseen": "unseen strings"}
PHASE_LINE = {"color": "0.75", "linewidth": 0.6, "zorder": 0}
CURVES_TITLE = "What happens while methods run"


@style.styled
def unlearning_curves(stages: pd.DataFrame) -> plt.Figure:
    """The gap closed, and losses on other strings, after every few passes of each method.

    Source: the figure is Palimpsest's own.
    """
    found = progress(stages)
    if found.empty:
        return method_rows.without_panels(
            CURVES_TITLE, stages, "No model was measured while a method ran: set "
            "`unlearning/curve` and `unlearning/relearn`, which measure these models and the "
            "retrained ones.",
        )  # fmt: skip
    names = {model: method_rows.methods_in(of["method"]) for model, of in found.groupby("model")}
    heights = {
        model: 0.4 + PANEL_HEIGHT * math.ceil(len(methods) / COLUMNS)
        for model, methods in names.items()
    }
    figure, parts = method_rows.figure_of_models(CURVES_TITLE, stages, heights, 0.9)
    for model, part in parts:
        draw_progress(part, found[found["model"] == model], names[model])
    handles = [
        elements.line_handle("gap closed (left axis)", **GAP),
        *(
            elements.line_handle(f"loss of {RATIO_LABELS[name]} (right axis)", **look)
            for name, look in RATIOS.items()
        ),
        method_rows.ideal_handle("retraining"),
        elements.line_handle("end of a phase", **PHASE_LINE),
    ]
    note = "Lines are cut where the axes end."
    seeds = by_seed.seeds_in(found)
    if len(seeds) > 1:
        note = f"Lines: mean over {len(seeds)} seeds; thin lines: the seeds. {note}"
    elements.legend(figure, handles, note)
    return figure


def progress(stages: pd.DataFrame) -> pd.DataFrame:
    """The gap closed and the ratios of losses of every method: a row per seed, passes and phase.

    The gap is that between the forget loss at the start and the forget loss of the retrained
    models. Problems whose retrained models were not measured have no rows.
    """
    keys = ["model", "method", "seed"]
    losses = [f"{name}_loss" for name in ("forget", *RATIOS)]
    of_retrained = stages[
        (stages["method"] == "retrain") & (stages["stage"] == RELEARNING) & (stages["passes"] == 0)
    ]
    goal = of_retrained.groupby(["model", "seed"])["forget_loss"].mean().rename("goal")
    running = stages[stages["stage"] == UNLEARNING]
    start = running[running["passes"] == 0].groupby(keys)[losses].mean().add_suffix("_start")
    means = running.groupby([*keys, "passes", "phase"], sort=False, dropna=False)[losses].mean()
    found = means.reset_index().join(start, on=keys).merge(goal.reset_index(), on=["model", "seed"])
    gap = found["goal"] - found["forget_loss_start"]
    found["gap"] = (found["forget_loss"] - found["forget_loss_start"]) / gap.mask(
        gap.abs() < LEAST_GAP
    )
    for name in RATIOS:
        found[name] = found[f"{name}_loss"] / found[f"{name}_loss_start"]
    return found[[*keys, "passes", "phase", "gap", *RATIOS]]


def draw_progress(figure: plt.Figure, found: pd.DataFrame, methods: list[str]) -> None:
    panels = elements.grid_of(figure, len(methods), COLUMNS, sharex=True, sharey=True)
    n_columns = min(COLUMNS, len(methods))
    first = None
    for place, (axes, method) in enumerate(zip(panels, methods, strict=True)):
        other = axes.twinx()
        if first is None:
            first = other
        else:
            other.sharey(first)
        draw_method(axes, other, found[found["method"] == method])
        axes.set_title(method, fontsize=7)
        at_the_right = place % n_columns == n_columns - 1
        other.tick_params(axis="y", labelright=at_the_right, length=0)
        if at_the_right:
            other.set_ylabel("loss, relative\nto its start", fontsize=7)
    panels[0].set_ylim(*GAP_LIMITS)
    panels[0].set_yticks([0, 0.5, 1, 1.5], ["0", "0.5", "1", "1.5"])
    first.set_ylim(*RATIO_LIMITS)
    first.set_yticks([1, 1.25, 1.5, 1.75], ["1", "1.25", "1.5", "1.75"])
    elements.whole_ticks(panels[0].xaxis, 4)
    figure.supxlabel("passes over batches (forward and backward)")
    figure.supylabel("share of the gap closed")


def draw_method(axes: plt.Axes, other: plt.Axes, found: pd.DataFrame) -> None:
    axes.axhline(1, **method_rows.IDEAL_LINE)
    for panel, value, look in (
        *((other, name, look) for name, look in RATIOS.items()),
        (axes, "gap", GAP),
    ):
        draw_means(panel, found, "passes", value, look)
    ends = found.dropna(subset=["phase"]).groupby(["seed", "phase"])["passes"].max()
    for end in sorted(set(ends)):
        axes.axvline(end, **PHASE_LINE)
    other.spines["right"].set_visible(True)
    other.spines["right"].set_color("0.8")
    other.grid(visible=False)
    other.patch.set_visible(False)
