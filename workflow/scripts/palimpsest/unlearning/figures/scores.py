"""Figures of the scores of methods, and of the trade-off between forgetting and accuracy."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palimpsest.figures import curves, style
from palimpsest.unlearning.figures import methods as shared

SCORES = {"forgetting_quality": shared.QUALITY, "final_score": "final score (0 to 1)"}
RATIOS = {"retain": "retained strings", "test": "test strings"}
DODGE = 0.055  # inches that a further set-up adds to a row
TRADEOFF_HEIGHT = 3.3


@style.styled
def unlearning_scores(summary: pd.DataFrame, scores: pd.DataFrame) -> Figure:
    """Forgetting quality and final score of every method, a marker per set-up.

    Parameters
    ----------
    summary : tables `unlearning_summary` of one language
    scores : tables `unlearning_scores` of the same, for which methods are beyond the cut-off

    Source: Are we making progress in unlearning?, section 6, figures 4 and 5.
    """
    shown = summary[summary["quantity"].isin(SCORES)]
    setups = list(shown["setup"].unique())
    height = shared.ROW_HEIGHT + DODGE * (len(setups) - 1)
    heights = {
        model: 0.75 + height * rows["method"].nunique()
        for model, rows in shown.groupby("model", sort=False)
    }
    figure = shared.titled("How well methods forget", shown, 0.8 + sum(heights.values()))
    slow = set()
    inner = curves.panels_in(figure)
    for model, part in shared.of_models(inner, heights):
        slow_here = shared.slow_methods(scores[scores["model"] == model])
        slow |= slow_here
        draw_scores(part, shown[shown["model"] == model], setups, slow_here)
    handles = [
        *shared.setup_handles(setups),
        shared.ideal_handle("retraining, mean (first set-up)"),
    ]
    note = shared.repetitions_note(int(shown["n_repetitions"].max()))
    if (shown["lower"].isna() & (shown["n_repetitions"] > 1)).any():
        note += " No bar: the same models in every repetition."
    curves.legend(figure, handles, f"{note} {shared.SLOW_NOTE}" if slow else note)
    return figure


def draw_scores(figure: Figure, summary: pd.DataFrame, setups: list[str], slow: set) -> None:
    """A panel per score, a row per method, best first."""
    quality = shared.of_main_setup(summary[summary["quantity"] == "forgetting_quality"])
    methods = shared.best_first(quality.set_index("method")["mean"])
    rows = shared.with_ends(methods, summary["method"])
    panels = figure.subplots(1, len(SCORES), sharey=True)
    highest = summary["mean"].where(summary["upper"].isna(), summary["upper"]).max()
    for axes, (quantity, label) in zip(panels, SCORES.items(), strict=True):
        found = summary[summary["quantity"] == quantity]
        draw_ideal(axes, found)
        for row in found.itertuples():
            y = rows.index(row.method) + dodged(setups.index(row.setup), len(setups))
            axes.errorbar(
                row.mean, y, xerr=shared.reach(row), linestyle="none", elinewidth=0.8,
                **shared.setup_look(row.setup, row.method, slow),
            )  # fmt: skip
        shared.unit_axis(axes, label, highest)
        shared.part_ends(axes, rows)
    shared.name_rows(panels[0], rows, slow)


def draw_ideal(axes: Axes, found: pd.DataFrame) -> None:
    """The value of retraining, which is the best possible value of a method."""
    ideal = shared.of_main_setup(found)
    for mean in ideal.loc[ideal["method"] == "retrain", "mean"]:
        axes.axvline(mean, **shared.IDEAL_LINE)


def dodged(index: int, n: int) -> float:
    """The position in its row of one of `n` markers."""
    return 0.62 * ((index + 0.5) / n - 0.5) if n > 1 else 0.0


@style.styled
def unlearning_tradeoff(scores: pd.DataFrame) -> Figure:
    """Forgetting quality against what is kept of the accuracy on retained and on test strings.

    Parameters
    ----------
    scores : tables `unlearning_scores` of one language

    Source: Are we making progress in unlearning?, appendix A.8, figure 12.
    """
    shown = shared.of_main_setup(scores)
    for name in RATIOS:
        ratio = shown[f"{name}_accuracy"] / shown[f"{name}_accuracy_retrained"]
        shown = shown.assign(**{name: ratio})
    means = shown.groupby(["model", "method"], sort=False)[["forgetting_quality", *RATIOS]].mean()
    overall = means["forgetting_quality"].groupby("method").mean()
    methods, slow = shared.best_first(overall), shared.slow_methods(shown)
    models = list(shown["model"].unique())
    key_rows = (len(methods) + 8) // 4
    figure = shared.titled(
        "Forgetting against keeping the rest",
        shown,
        TRADEOFF_HEIGHT * len(models) + 0.14 * key_rows,
    )
    inner = curves.panels_in(figure)
    drawn = []
    for model, part in shared.of_models(inner, dict.fromkeys(models, TRADEOFF_HEIGHT)):
        panels = part.subplots(1, len(RATIOS), sharey=True)
        runs = shown[shown["model"] == model]
        for axes, (name, strings) in zip(panels, RATIOS.items(), strict=True):
            draw_ratio(axes, runs, means.loc[model], name, slow)
            axes.set_title(strings, weight="bold")
            drawn.append((axes, means.loc[model][["forgetting_quality", name]]))
        panels[0].set_ylabel("accuracy, as a share\nof retraining’s")
    setup = shown["setup"].iloc[0]
    n = shown["repetition"].nunique()
    note = (
        f"Set-up {style.SETUPS[setup].label}. Markers: mean over {n} repetitions of the "
        "evaluation; dots: the repetitions. Grey: doing nothing (none) and retraining (retrain); "
        "dashed: the accuracy of retraining." + f" {shared.SLOW_NOTE}" * bool(slow)
    )
    curves.legend(figure, shared.number_key(methods, slow), note, columns=4)
    return shared.after_layout(figure, lambda: number_all(drawn, methods))


def draw_ratio(axes: Axes, runs: pd.DataFrame, means: pd.DataFrame, name: str, slow: set) -> None:
    """Every method's mean, with its repetitions as dots."""
    axes.axhline(1, **shared.IDEAL_LINE)
    for method, of_method in runs.groupby("method", sort=False):
        look = shared.setup_look(of_method["setup"].iloc[0], method, slow)
        axes.plot(
            of_method["forgetting_quality"], of_method[name], linestyle="none", marker=".",
            markersize=2.5, color=look["color"], alpha=0.5, markeredgewidth=0,
        )  # fmt: skip
        axes.plot(*means.loc[method, ["forgetting_quality", name]], linestyle="none", **look)
    shared.unit_axis(axes, shared.QUALITY, runs["forgetting_quality"].max())
    axes.margins(y=0.1)


def number_all(drawn: list[tuple[Axes, pd.DataFrame]], methods: list[str]) -> None:
    """Put numbers of methods, and names of the two ends, near their markers."""
    for axes, places in drawn:
        shared.number_points(axes, shared.labelled(methods, places))
