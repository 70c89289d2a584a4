"""Other metrics of forgetting against the forgetting quality."""

from __future__ import annotations

import math

from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, point_labels, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.unlearning import kinds
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.figures.unlearning_hardness import signed, spearman
from palimpsest.unlearning.paper import PAPER

FIGURE = Figure(
    __name__,
    order=120,
    chapter="unlearning",
    title="Other metrics and the forgetting quality",
    caption=(
        "Other measures of forgetting against the forgetting quality; dashed: retrained "
        "models (shaded: the interval, where one seed is drawn). See whether markers near the "
        "dashed line are also at the right: if not, an attack on single strings still finds "
        "them."
    ),
    numbers="6 and 17",
    paper=PAPER,
    tables=(kinds.METRICS, kinds.SUMMARY),
)
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


@style.styled
def unlearning_metrics(metrics: pd.DataFrame, summary: pd.DataFrame) -> plt.Figure:
    """Every other metric against the forgetting quality, a panel per metric.

    Parameters
    ----------
    metrics : tables `unlearning_metrics` of one language
    summary : tables `unlearning_summary` of the same, for the forgetting quality

    Source: Are we making progress in unlearning?, section 6 and appendix A.11, figures 6 and 17.
    """
    quality = method_rows.of_main_setup(summary[summary["quantity"] == "forgetting_quality"])
    quality = quality.rename(columns={"mean": "quality"})
    keys = ["model", "method", "seed"]
    shown = metrics.merge(quality[[*keys, "setup", "quality"]], on=keys)
    methods = method_rows.best_first(shown.groupby("method")["quality"].mean())
    names = metrics_in(shown["metric"])
    n_rows = math.ceil(len(names) / METRIC_COLUMNS)
    models = list(shown["model"].unique())
    heights = dict.fromkeys(models, METRIC_HEIGHT * n_rows + 0.2)
    key_rows = (len(methods) + 8) // 4
    height = 0.5 + sum(heights.values()) + 0.14 * key_rows
    figure = method_rows.titled("Other metrics and the forgetting quality", shown, height)
    parts = method_rows.of_models(elements.panels_in(figure), heights)
    drawn = []
    for model, part in parts:
        drawn += draw_metrics(part, shown[shown["model"] == model], names, methods)
    note = (
        f"Forgetting quality: set-up {shown['setup'].iloc[0]}. {markers_note(shown)} Dashed: "
        "retrained models, the value that ideal unlearning has; ρ: rank correlation over the "
        "methods. Grey: doing nothing (none) and retraining (retrain)."
    )
    elements.legend(figure, method_rows.number_key(methods), note, columns=4)
    return point_labels.after_layout(figure, drawn)


def markers_note(shown: pd.DataFrame) -> str:
    n_seeds = shown["seed"].nunique()
    if n_seeds == 1:
        return "Markers: mean over the models; bars: 95 % intervals."
    return f"Markers: mean over {n_seeds} seeds; dots: the seeds; bars: 95 % intervals (Student)."


def metrics_in(names: pd.Series) -> list[str]:
    present = list(dict.fromkeys(names))
    known = [name for name in METRICS if name in present]
    return [*known, *(name for name in present if name not in METRICS)]


def draw_metrics(
    figure: plt.Figure, metrics: pd.DataFrame, names: list[str], methods: list[str]
) -> list:
    """Returns each panel with its points for `point_labels`."""
    n_rows = math.ceil(len(names) / METRIC_COLUMNS)
    grid = figure.subplots(n_rows, METRIC_COLUMNS, squeeze=False)
    drawn = []
    for axes, name in zip(grid.flat, names, strict=False):
        found = metrics[metrics["metric"] == name]
        places = draw_metric(axes, found, metrics["quality"].max())
        drawn.append((axes, method_rows.labelled(methods, places)))
        title = f"{METRICS.get(name, name.replace('_', ' '))}\n{proxy_in_words(found)}"
        axes.set_title(title, weight="bold", fontsize=7)
    for axes in grid.flat[len(names) :]:
        axes.remove()
    figure.supxlabel(method_rows.QUALITY)
    return drawn


def draw_metric(axes: plt.Axes, found: pd.DataFrame, highest: float) -> pd.DataFrame:
    """Returns the x and y of each method."""
    known = found[np.isfinite(found["estimate"])]
    if found["reference"].notna().any():
        axes.axhline(found["reference"].mean(), **method_rows.IDEAL_LINE)
    several = known["seed"].nunique() > 1
    if not several and found["reference_lower"].notna().any():
        ends = found["reference_lower"].mean(), found["reference_upper"].mean()
        axes.axhspan(*ends, color="black", alpha=0.08, linewidth=0)
    if several:
        for row in known.itertuples():
            colour = method_rows.setup_look(row.setup, row.method)["color"]
            axes.plot(
                row.quality, row.estimate, marker=".", markersize=2.5, color=colour, alpha=0.5,
                markeredgewidth=0,
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
            row.quality, row.mean, yerr=method_rows.reach(row), linestyle="none", elinewidth=0.7,
            **{**method_rows.setup_look(row.setup, row.method), "markersize": 3.4},
        )  # fmt: skip
    if not several:
        axes.margins(y=0.15)
    method_rows.unit_axis(axes, "", highest)
    return means.set_index("method")[["quality", "mean"]]


def proxy_in_words(found: pd.DataFrame) -> str:
    """The rank correlation over the methods of a metric with the forgetting quality.

    Several seeds are averaged first.
    """
    methods = found[~found["method"].isin(method_rows.ENDS) & np.isfinite(found["estimate"])]
    methods = methods.groupby("method")[["quality", "estimate"]].mean()
    correlation = spearman(methods["quality"], methods["estimate"])
    return "ρ undefined" if np.isnan(correlation) else f"ρ = {signed(correlation)}"
