"""Further figures of unlearning: agreement of methods, other metrics, and other attackers."""

import math

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import curves, style
from palimpsest.unlearning.figures import methods as shared
from palimpsest.unlearning.figures import seeds as by_seed
from palimpsest.unlearning.figures.epsilons import signed, spearman

METRICS = {
    "accuracy_gap": "accuracy gap (share)",
    "mia_accuracy": "attack accuracy (0 to 1)",
    "mia_gap": "its gap (0 to 1)",
    "auc_loss": "AUC of the loss",
    "auc_zlib": "AUC, loss by zlib",
    "auc_calibrated": "AUC, loss by reference",
    "auc_min_k": "AUC of Min-K",
    "auc_min_k_plus": "AUC of Min-K++",
    "privleak": "PrivLeak (share)",
    "privleak_loss": "PrivLeak, loss (share)",
    "extraction": "share extracted",
    "extraction_strength": "strength (share)",
    "leak_at_1": "leak@1 (share)",
    "leak_at_100": "leak@100 (share)",
    "relearn_epochs": "relearning (epochs)",
    "relearn_steps": "relearning (steps)",
    "relearn_not_reached": "not relearned (share)",
    "relearn_log_p": "log p, relearning",
    "distance_to_original": "L2 to original",
    "distance_to_retrained": "L2 to retrained",
    "ks_log_p": "log p, KS test",
}
METRIC_COLUMNS, METRIC_HEIGHT = 4, 1.55
WRITTEN = 12  # methods up to which a correlation is written into its square
EFFECTS = {
    "n": "models that evaluate,\nof each kind (N)",
    "pool": "pool of the bootstrap\n(models of each kind, K)",
    "repetitions": "repetitions of the bootstrap (E)",
}
CURVES_HEIGHT = 4.4  # inches, of all panels with curves


# Agreement


@style.styled
def unlearning_agreement(agreement: pd.DataFrame) -> Figure:
    """Whether methods find the same strings hard: a square per pair of methods.

    Parameters
    ----------
    agreement : tables `unlearning_agreement` of one language

    Source: Are we making progress in unlearning?, appendix A.9, figure 15, which shows the strings
    of every pair; here, their rank correlation.
    """
    matrices = {
        model: alike_together(matrix(pairs))
        for model, pairs in agreement.groupby("model", sort=False)
    }
    heights = {model: 1.7 + 0.17 * max(len(of), 8) for model, of in matrices.items()}
    figure = shared.titled(
        "Whether methods find the same strings hard", agreement, 0.5 + sum(heights.values())
    )
    n_seeds = agreement["seed"].nunique()
    for model, part in shared.of_models(figure, heights):
        draw_matrix(part, matrices[model], n_seeds)
    return figure


def matrix(pairs: pd.DataFrame) -> pd.DataFrame:
    """Spearman's correlations, of every method with every other; 1 with itself.

    Several seeds have their mean, over the seeds in which the correlation is defined.
    """
    methods = list(dict.fromkeys([*pairs["method"], *pairs["other"]]))
    full = pd.DataFrame(np.nan, methods, methods)
    means = pairs.groupby(["method", "other"], sort=False)["spearman"].mean().reset_index()
    for row in means.itertuples():
        full.loc[row.method, row.other] = full.loc[row.other, row.method] = row.spearman
    for method in methods:
        full.loc[method, method] = 1.0
    return full


def alike_together(full: pd.DataFrame) -> pd.DataFrame:
    """The methods sorted by the first eigenvector, so that similar methods are neighbours."""
    _, axes = np.linalg.eigh(full.fillna(0).to_numpy())
    main = axes[:, -1] * (1 if axes[:, -1].sum() >= 0 else -1)
    order = full.index[np.argsort(-np.round(main, 6), kind="stable")]
    return full.loc[order, order]


def draw_matrix(figure: SubFigure, full: pd.DataFrame, n_seeds: int = 1) -> None:
    """The squares; with few methods, their values are written into them."""
    axes = figure.subplots()
    n = len(full)
    axes.set_facecolor("0.85")
    image = axes.pcolormesh(
        np.arange(n + 1) - 0.5, np.arange(n + 1) - 0.5, np.ma.masked_invalid(full.to_numpy()),
        cmap="PuOr_r", vmin=-1, vmax=1, edgecolors="white", linewidth=0.5,
    )  # fmt: skip
    axes.set(xlim=(-0.5, n - 0.5), ylim=(n - 0.5, -0.5))
    axes.set_xticks(range(n), full.index, rotation=90, fontsize=6.5)
    axes.set_yticks(range(n), full.index, fontsize=6.5)
    axes.tick_params(length=0)
    axes.grid(visible=False)
    axes.set_aspect("equal", anchor="W")
    if n <= WRITTEN:
        for (row, column), value in np.ndenumerate(full.to_numpy()):
            shown = (
                "–"
                if np.isnan(value)
                else f"{value + 0.0:.1f}".replace("-0.0", "0.0").replace("-", "−")
            )
            ink = "white" if abs(value) > 0.75 else "black"
            axes.text(column, row, shown, ha="center", va="center", fontsize=6, color=ink)
    bar = figure.colorbar(image, cax=axes.inset_axes([1.04, 0.1, 0.035, 0.8]))
    averaged = f"; mean of {n_seeds} seeds" * (n_seeds > 1)
    bar.set_label(f"rank correlation of epsilon over\nthe forget strings (−1 to 1{averaged})")
    bar.outline.set_visible(False)


# Metrics


@style.styled
def unlearning_metrics(metrics: pd.DataFrame, summary: pd.DataFrame) -> Figure:
    """Every other metric against the forgetting quality, a panel per metric.

    Parameters
    ----------
    metrics : tables `unlearning_metrics` of one language
    summary : tables `unlearning_summary` of the same, for the forgetting quality

    Source: Are we making progress in unlearning?, section 6 and appendix A.11, figures 6 and 17.
    """
    quality = shared.of_main_setup(summary[summary["quantity"] == "forgetting_quality"])
    quality = quality.rename(columns={"mean": "quality"})
    keys = ["model", "method", "seed"]
    shown = metrics.merge(quality[[*keys, "setup", "quality"]], on=keys)
    methods = shared.best_first(shown.groupby("method")["quality"].mean())
    names = metrics_in(shown["metric"])
    n_rows = math.ceil(len(names) / METRIC_COLUMNS)
    models = list(shown["model"].unique())
    heights = dict.fromkeys(models, METRIC_HEIGHT * n_rows + 0.2)
    key_rows = (len(methods) + 8) // 4
    figure = shared.titled(
        "Other metrics and the forgetting quality", shown,
        0.5 + sum(heights.values()) + 0.14 * key_rows,
    )  # fmt: skip
    inner = curves.panels_in(figure)
    drawn = []
    for model, part in shared.of_models(inner, heights):
        drawn += draw_metrics(part, shown[shown["model"] == model], names)
    note = (
        f"Forgetting quality: set-up {shown['setup'].iloc[0]}. {markers_note(shown)} Dashed: "
        "retrained models, the value that ideal unlearning has; ρ: rank correlation over the "
        "methods. Grey: doing nothing (none) and retraining (retrain)."
    )
    curves.legend(figure, shared.number_key(methods), note, columns=4)
    return shared.after_layout(figure, lambda: number_all(drawn, methods))


def markers_note(shown: pd.DataFrame) -> str:
    """The meaning of markers and bars, with one seed or several."""
    n_seeds = shown["seed"].nunique()
    if n_seeds == 1:
        return "Markers: mean over the models; bars: 95 % intervals."
    return f"Markers: mean over {n_seeds} seeds; dots: the seeds; bars: 95 % intervals (Student)."


def metrics_in(names: pd.Series) -> list[str]:
    """The metrics in `names`: known metrics in their order, then the others."""
    present = list(dict.fromkeys(names))
    known = [name for name in METRICS if name in present]
    return [*known, *(name for name in present if name not in METRICS)]


def draw_metrics(figure: SubFigure, metrics: pd.DataFrame, names: list[str]) -> list:
    """A panel per metric; returns each panel with the positions of its methods."""
    n_rows = math.ceil(len(names) / METRIC_COLUMNS)
    grid = figure.subplots(n_rows, METRIC_COLUMNS, squeeze=False)
    drawn = []
    for axes, name in zip(grid.flat, names, strict=False):
        found = metrics[metrics["metric"] == name]
        drawn.append((axes, draw_metric(axes, found, metrics["quality"].max())))
        title = f"{METRICS.get(name, name.replace('_', ' '))}\n{proxy_in_words(found)}"
        axes.set_title(title, weight="bold", fontsize=7)
    for axes in grid.flat[len(names) :]:
        axes.remove()
    figure.supxlabel(shared.QUALITY, fontsize=8)
    return drawn


def draw_metric(axes: Axes, found: pd.DataFrame, highest: float) -> pd.DataFrame:
    """One metric against the forgetting quality; returns x and y by method."""
    known = found[np.isfinite(found["estimate"])]
    if found["reference"].notna().any():
        axes.axhline(found["reference"].mean(), **shared.IDEAL_LINE)
    several = known["seed"].nunique() > 1
    if several:
        for row in known.itertuples():
            look = shared.setup_look(row.setup, row.method)
            axes.plot(
                row.quality, row.estimate, marker=".", markersize=2.5, color=look["color"],
                alpha=0.5, markeredgewidth=0,
            )  # fmt: skip
        axes.margins(y=0.15)
        axes.autoscale_view()
        axes.set_autoscale_on(False)
        means = intervals_over_seeds(known, ["method", "setup"], "estimate").reset_index()
        means["quality"] = means["method"].map(known.groupby("method")["quality"].mean())
    else:
        means = known.rename(columns={"estimate": "mean"})
    for row in means.itertuples():
        axes.errorbar(
            row.quality, row.mean, yerr=shared.reach(row), linestyle="none", elinewidth=0.7,
            **{**shared.setup_look(row.setup, row.method), "markersize": 3.4},
        )  # fmt: skip
    if not several:
        axes.margins(y=0.15)
    shared.unit_axis(axes, "", highest)
    return means.set_index("method")[["quality", "mean"]]


def proxy_in_words(found: pd.DataFrame) -> str:
    """The rank correlation of a metric with the forgetting quality, over the methods.

    Several seeds are averaged first.
    """
    methods = found[~found["method"].isin(shared.ENDS) & np.isfinite(found["estimate"])]
    methods = methods.groupby("method")[["quality", "estimate"]].mean()
    correlation = spearman(methods["quality"], methods["estimate"])
    return "ρ undefined" if np.isnan(correlation) else f"ρ = {signed(correlation)}"


def number_all(drawn: list[tuple[Axes, pd.DataFrame]], methods: list[str]) -> None:
    """Put numbers of methods, and names of the two ends, near their markers."""
    for axes, places in drawn:
        shared.number_points(axes, shared.labelled(methods, places))


# Effects


@style.styled
def unlearning_effects(effects: pd.DataFrame) -> Figure:
    """How the forgetting quality depends on the attacker and on the numbers of models.

    Parameters
    ----------
    effects : tables `unlearning_effects` of one language

    Source: Are we making progress in unlearning?, appendices A.13 to A.15, figures 19 to 21.
    """
    rows = {
        model: shared.with_ends(by_quality(of_model), of_model["method"])
        for model, of_model in effects.groupby("model", sort=False)
    }
    heights = {
        model: max(CURVES_HEIGHT, 0.5 + shared.ROW_HEIGHT * len(names))
        for model, names in rows.items()
    }
    figure = shared.titled(
        "What the forgetting quality depends on", effects, 0.7 + sum(heights.values())
    )
    inner = curves.panels_in(figure)
    drawn = []
    for model, part in shared.of_models(inner, heights):
        drawn += draw_effects(part, effects[effects["model"] == model], rows[model])
    handles = [
        curves.line_handle("attacker evaluated on the models it was fitted on", linestyle="none",
                           marker="o", markersize=shared.MARKER, markerfacecolor="white"),
        curves.line_handle("on other models", linestyle="none", marker="o",
                           markersize=shared.MARKER),
        curves.line_handle("doing nothing, retraining", style.END),
    ]  # fmt: skip
    seeds = by_seed.seeds_in(effects)
    over = f"{len(seeds)} seeds" if len(seeds) > 1 else "the repetitions"
    note = f"Markers and lines: mean over {over}; bars and bands: smallest to largest value."
    if len(seeds) > 1:
        note += " Upright strokes: the seeds, each a mean over its repetitions."
    curves.legend(figure, handles, note)
    return shared.after_layout(figure, lambda: number_ends(drawn))


def separate(effects: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """The values whose spread is shown: those of the seeds, or with one seed all repetitions."""
    if effects["seed"].nunique() == 1:
        return effects
    return by_seed.of_seeds(effects, keys, ["forgetting_quality"])


def by_quality(effects: pd.DataFrame) -> list[str]:
    """The methods, sorted by their mean over all rows, best first."""
    return shared.best_first(effects.groupby("method", sort=False)["forgetting_quality"].mean())


def draw_effects(figure: SubFigure, effects: pd.DataFrame, rows: list[str]) -> list:
    """The attackers in rows of methods, and a panel of curves for each effect with a number.

    Returns the panels of curves, each with the end points of the methods' curves.
    """
    curved = [effect for effect in EFFECTS if (effects["effect"] == effect).any()]
    left, right = figure.subfigures(1, 2, width_ratios=[1.25, 1])
    draw_attackers(left.subplots(), effects[effects["effect"] == "attacker"], rows)
    if not curved:
        return []
    drawn = []
    panels = right.subplots(len(curved), 1, sharey=True, squeeze=False)[:, 0]
    for axes, effect in zip(panels, curved, strict=True):
        varied = by_number(effects[effects["effect"] == effect], effect)
        drawn.append((axes, draw_curves(axes, varied, rows)))
        axes.set_xlabel(EFFECTS[effect])
        end = shared.unit_end(effects["forgetting_quality"].max())
        axes.set_ylim(-0.04 * end, 1.04 * end)
        axes.set_yticks(np.linspace(0, end, 5), shared.unit_ticks(end))
    right.supylabel(shared.QUALITY, fontsize=8)
    return drawn


def draw_attackers(axes: Axes, attackers: pd.DataFrame, rows: list[str]) -> None:
    """Fitted and evaluated on the same models, and on others, in a row per method."""
    if attackers.empty:
        axes.text(0.5, (len(rows) - 1) / 2, "too few models\nto hold some out", ha="center")
    several = attackers["seed"].nunique() > 1
    values = separate(attackers, ["method", "attacker"])
    for (method, attacker), found in values.groupby(["method", "attacker"], sort=False):
        mean, ends = curves.whiskers(found["forgetting_quality"])
        colour = style.END if method in shared.ENDS else style.INK
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
    shared.name_rows(axes, rows)
    shared.part_ends(axes, rows)
    numbers = shared.numbered(shared.methods_in(rows))
    axes.set_yticks(
        range(len(rows)),
        [f"{row} {numbers[row]}" if row in numbers else shared.END_LABELS[row] for row in rows],
    )
    shared.unit_axis(
        axes, shared.QUALITY, 1 if attackers.empty else attackers["forgetting_quality"].max()
    )


def by_number(effects: pd.DataFrame, effect: str) -> pd.DataFrame:
    """Mean, min and max of the forgetting quality at each value of what is varied, by method.

    They are over the seeds, or over the repetitions of a single seed.
    """
    keys = ["method", "value"]
    values = separate(effects, keys)
    found = values.groupby(keys, sort=False)["forgetting_quality"].agg(["mean", "min", "max"])
    return found.reset_index().sort_values("value", kind="stable")


def draw_curves(axes: Axes, varied: pd.DataFrame, rows: list[str]) -> list:
    """A curve per method; returns where each ends."""
    ends = []
    numbers = shared.numbered(shared.methods_in(rows))
    for method, curve in varied.groupby("method", sort=False):
        colour = style.END if method in shared.ENDS else style.INK
        axes.fill_between(
            curve["value"], curve["min"], curve["max"], color=colour, alpha=0.06, linewidth=0
        )
        axes.plot(
            curve["value"], curve["mean"], color=colour, linewidth=0.8, marker=".", markersize=3
        )
        last = curve.iloc[-1]
        if method in numbers:
            ends.append((numbers[method], last["value"], last["mean"]))
    values = sorted(varied["value"].unique())
    axes.set_xscale("log", base=2)
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.minorticks_off()
    # On the right, room for the labels of the curves.
    room = (values[-1] / values[0]) ** 0.25 if len(values) > 1 else 2
    axes.set_xlim(values[0] / room**0.2, values[-1] * room)
    return ends


def number_ends(drawn: list) -> None:
    """Numbers of the methods at the ends of their curves."""
    for axes, ends in drawn:
        shared.number_ends(axes, ends)
