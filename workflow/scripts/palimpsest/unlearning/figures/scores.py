"""Figures of the scores of methods, and of the trade-off between forgetting and utility."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import curves, style
from palimpsest.unlearning.figures import methods as shared
from palimpsest.unlearning.figures import seeds as by_seed

SCORES = {
    "forgetting_quality": shared.QUALITY,
    "final_score": "final score,\nby accuracy (0 to 1)",
    "final_score_probability": "final score,\nby probability (0 to 1)",
}
NULL = ["null_quality", "null_lower", "null_upper"]
NULL_COLOUR = "0.87"
RATIOS = {
    "retain_accuracy": "retained strings",
    "test_accuracy": "test strings",
    "retain_probability": "retained strings",
    "test_probability": "test strings",
}
DODGE = 0.055  # inches that a further set-up adds to a row
SEED_SPACE = 0.1  # inches that seeds add to a row
TRADEOFF_HEIGHT = 4.6


@style.styled
def unlearning_scores(summary: pd.DataFrame, scores: pd.DataFrame, tests: pd.DataFrame) -> Figure:
    """Forgetting quality and final scores of every method, a marker per set-up.

    Parameters
    ----------
    summary : tables `unlearning_summary` of one language
    scores : tables `unlearning_scores` of the same, for which methods are beyond the cut-off
    tests : tables `unlearning_tests` of the same, for the quality of relabelled models

    Source: Are we making progress in unlearning?, section 6, figures 4 and 5.
    """
    shown = summary[summary["quantity"].isin(SCORES)]
    setups, seeds = list(shown["setup"].unique()), by_seed.seeds_in(shown)
    height = shared.ROW_HEIGHT + DODGE * (len(setups) - 1) + SEED_SPACE * (len(seeds) > 1)
    heights = {
        model: 0.85 + height * rows["method"].nunique()
        for model, rows in shown.groupby("model", sort=False)
    }
    figure = shared.titled("How well methods forget", shown, 1.0 + sum(heights.values()))
    slow = set()
    inner = curves.panels_in(figure)
    for model, part in shared.of_models(inner, heights):
        slow_here = shared.slow_methods(scores[scores["model"] == model])
        slow |= slow_here
        of_model = shown[shown["model"] == model]
        draw_scores(part, of_model, tests[tests["model"] == model], setups, slow_here)
    handles = [
        *shared.setup_handles(setups),
        curves.bar_handle("relabelled models, 95 % of the relabellings", NULL_COLOUR),
        shared.ideal_handle("their mean; on the right: retraining (first set-up)"),
    ]
    note = by_seed.note(seeds) or shared.repetitions_note(int(shown["n_repetitions"].max()))
    if len(seeds) > 1:
        note += " Strips: mean of the seeds' bands; to be inside is no test."
    elif (shown["lower"].isna() & (shown["n_repetitions"] > 1)).any():
        note += " No bar: the same models in every repetition."
    curves.legend(figure, handles, f"{note} {shared.SLOW_NOTE}" if slow else note)
    return figure


def draw_scores(
    figure: SubFigure, summary: pd.DataFrame, tests: pd.DataFrame, setups: list[str], slow: set
) -> None:
    """A panel per score, a row per method, best first."""
    quality = shared.of_main_setup(summary[summary["quantity"] == "forgetting_quality"])
    methods = shared.best_first(quality.groupby("method", sort=False)["mean"].mean())
    rows = shared.with_ends(methods, summary["method"])
    quantities = [name for name in SCORES if (summary["quantity"] == name).any()]
    panels = figure.subplots(1, len(quantities), sharey=True, squeeze=False)[0]
    several = summary["seed"].nunique() > 1
    means = averaged(summary)
    highest = summary["mean"] if several else means["upper"].fillna(means["mean"])
    highest = max(highest.max(), tests["null_upper"].max())
    for axes, quantity in zip(panels, quantities, strict=True):
        if quantity == "forgetting_quality":
            draw_null(axes, tests, rows)
        else:
            draw_ideal(axes, summary[summary["quantity"] == quantity])
        if several:
            draw_seeds(axes, summary[summary["quantity"] == quantity], rows, setups)
        for row in means[means["quantity"] == quantity].itertuples():
            y = rows.index(row.method) + dodged(setups.index(row.setup), len(setups))
            axes.errorbar(
                row.mean, y, xerr=shared.reach(row), linestyle="none", elinewidth=0.8,
                **shared.setup_look(row.setup, row.method, slow),
            )  # fmt: skip
        shared.unit_axis(axes, SCORES[quantity], highest)
        shared.part_ends(axes, rows)
    shared.name_rows(panels[0], rows, slow)


def averaged(summary: pd.DataFrame) -> pd.DataFrame:
    """Mean and interval over the seeds; over the repetitions if there is only one seed."""
    if summary["seed"].nunique() == 1:
        return summary
    keys = ["method", "setup", "quantity"]
    values = summary.drop(columns=["lower", "upper"]).rename(columns={"mean": "value"})
    return intervals_over_seeds(values, keys, "value").reset_index()


def draw_null(axes: Axes, tests: pd.DataFrame, rows: list[str]) -> None:
    """The forgetting quality of relabelled models: a strip in the row of each method."""
    for method, null in tests.groupby("method", sort=False)[NULL].mean().iterrows():
        if method in rows:
            y = rows.index(method)
            axes.barh(
                y, null["null_upper"] - null["null_lower"], height=1, left=null["null_lower"],
                color=NULL_COLOUR, linewidth=0, zorder=0,
            )  # fmt: skip
            axes.plot([null["null_quality"]] * 2, [y - 0.5, y + 0.5], **shared.IDEAL_LINE)


def draw_seeds(axes: Axes, found: pd.DataFrame, rows: list[str], setups: list[str]) -> None:
    """A small marker for every seed, below the mean of its set-up."""
    below = 0.3 / len(setups)
    for (setup, method), group in found.groupby(["setup", "method"], sort=False):
        y = rows.index(method) + dodged(setups.index(setup), len(setups)) + below
        look = shared.setup_look(setup, method)
        axes.plot(
            group["mean"], [y] * len(group), linestyle="none", color=look["color"], alpha=0.45,
            marker=look["marker"], markersize=by_seed.SEED_MARKER, markeredgewidth=0,
        )  # fmt: skip


def draw_ideal(axes: Axes, found: pd.DataFrame) -> None:
    """The mean value of retraining."""
    ideal = shared.of_main_setup(found)
    ideal = ideal.loc[ideal["method"] == "retrain", "mean"]
    if len(ideal):
        axes.axvline(ideal.mean(), **shared.IDEAL_LINE)


def dodged(index: int, n: int) -> float:
    """The position in its row of one of `n` markers."""
    return 0.62 * ((index + 0.5) / n - 0.5) if n > 1 else 0.0


@style.styled
def unlearning_tradeoff(scores: pd.DataFrame) -> Figure:
    """Forgetting quality against what is kept of accuracy and of probability on other strings.

    Parameters
    ----------
    scores : tables `unlearning_scores` of one language

    Source: Are we making progress in unlearning?, appendix A.8, figure 12, for the accuracy; the
    probability is Palimpsest's own.
    """
    shown = shared.of_main_setup(scores)
    shown = shown.assign(**{name: shown[name] / shown[f"{name}_retrained"] for name in RATIOS})
    seeds = by_seed.seeds_in(shown)
    values = ["forgetting_quality", *RATIOS]
    each = by_seed.of_seeds(shown, ["model", "method"], values)
    means = each.groupby(["model", "method"], sort=False)[values].mean()
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
    dots = each if len(seeds) > 1 else shown
    for model, part in shared.of_models(inner, dict.fromkeys(models, TRADEOFF_HEIGHT)):
        grid = part.subplots(2, 2, sharex=True, sharey="row")
        runs = dots[dots["model"] == model].assign(setup=shown["setup"].iloc[0])
        for axes, (name, strings) in zip(grid.flat, RATIOS.items(), strict=True):
            draw_ratio(axes, runs, means.loc[model], name, slow)
            axes.set_title(strings, weight="bold")
            drawn.append((axes, means.loc[model][["forgetting_quality", name]]))
        for axes, what in zip(grid[:, 0], ("accuracy", "probability"), strict=True):
            axes.set_ylabel(f"{what}, as a share\nof retraining’s")
        for axes in grid[1]:
            axes.set_xlabel(shared.QUALITY)
    curves.legend(
        figure, shared.number_key(methods, slow), tradeoff_note(shown, seeds, slow), columns=4
    )
    return shared.after_layout(figure, lambda: number_all(drawn, methods))


def tradeoff_note(shown: pd.DataFrame, seeds: list[int], slow: set) -> str:
    """The small print under the trade-off."""
    n = shown["repetition"].nunique()
    markers = (
        f"Markers: mean over {len(seeds)} seeds, with 95 % intervals (Student) of both values; "
        "dots: the seeds. "
        if len(seeds) > 1
        else f"Markers: mean over {n} repetitions of the evaluation; dots: the repetitions. "
    )
    return (
        f"Set-up {style.SETUPS[shown['setup'].iloc[0]].label}. {markers}Probability: mean of the "
        "geometric means of the strings' token probabilities. Grey: doing nothing (none) and "
        "retraining (retrain); dashed: as good as retraining." + f" {shared.SLOW_NOTE}" * bool(slow)
    )


def draw_ratio(axes: Axes, runs: pd.DataFrame, means: pd.DataFrame, name: str, slow: set) -> None:
    """Every method's mean, with its seeds (or its repetitions) as dots."""
    axes.axhline(1, **shared.IDEAL_LINE)
    setup = runs["setup"].iloc[0]
    for method, of_method in runs.groupby("method", sort=False):
        look = shared.setup_look(setup, method, slow)
        axes.plot(
            of_method["forgetting_quality"], of_method[name], linestyle="none", marker=".",
            markersize=2.5, color=look["color"], alpha=0.5, markeredgewidth=0,
        )  # fmt: skip
        axes.plot(*means.loc[method, ["forgetting_quality", name]], linestyle="none", **look)
    shared.unit_axis(axes, "", runs["forgetting_quality"].max())
    axes.margins(y=0.1)
    if "repetition" not in runs:
        draw_intervals(axes, runs, name)


def draw_intervals(axes: Axes, runs: pd.DataFrame, name: str) -> None:
    """Student intervals over the seeds in both directions, cut where the axes end."""
    axes.autoscale_view()
    axes.set_autoscale_on(False)
    across, up = (
        intervals_over_seeds(runs, ["method"], value).reset_index()
        for value in ("forgetting_quality", name)
    )
    for x, y in zip(across.itertuples(), up.itertuples(), strict=True):
        colour = style.END if x.method in shared.ENDS else "0.35"
        axes.errorbar(
            x.mean, y.mean, xerr=shared.reach(x), yerr=shared.reach(y), linestyle="none",
            color=colour, elinewidth=0.5, alpha=0.35, zorder=1,
        )  # fmt: skip


def number_all(drawn: list[tuple[Axes, pd.DataFrame]], methods: list[str]) -> None:
    """Put numbers of methods, and names of the two ends, near their markers."""
    for axes, places in drawn:
        shared.number_points(axes, shared.labelled(methods, places))
