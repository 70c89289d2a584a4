"""The trade-off between forgetting and utility."""

from __future__ import annotations

from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, point_labels, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.unlearning import kinds
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.figures import seeds as by_seed
from palimpsest.unlearning.paper import PAPER

FIGURE = Figure(
    __name__,
    order=40,
    chapter="unlearning",
    title="Forgetting against keeping the rest",
    caption=(
        "Forgetting quality against what is kept on retained and on test strings, as a share "
        "of retrained models': accuracy (top), probability of tokens (bottom). The best are "
        "at the upper right; those below the dashed line pay for forgetting."
    ),
    numbers="12",
    paper=PAPER,
    tables=(kinds.SCORES,),
)
RATIOS = {
    "retain_accuracy": "retained strings",
    "test_accuracy": "test strings",
    "retain_probability": "retained strings",
    "test_probability": "test strings",
}
TRADEOFF_HEIGHT = 4.6


@style.styled
def unlearning_tradeoff(scores: pd.DataFrame) -> plt.Figure:
    """Forgetting quality against what is kept of accuracy and of probability on other strings.

    Source: Are we making progress in unlearning?, appendix A.8, figure 12, for the accuracy; the
    probability is Palimpsest's own.
    """
    shown = method_rows.of_main_setup(scores)
    shown = shown.assign(**{name: shown[name] / shown[f"{name}_retrained"] for name in RATIOS})
    seeds = by_seed.seeds_in(shown)
    values = ["forgetting_quality", *RATIOS]
    each = by_seed.of_seeds(shown, ["model", "method"], values)
    means = each.groupby(["model", "method"], sort=False)[values].mean()
    overall = means["forgetting_quality"].groupby("method").mean()
    methods, slow = method_rows.best_first(overall), method_rows.slow_methods(shown)
    heights = dict.fromkeys(shown["model"].unique(), TRADEOFF_HEIGHT)
    key_rows = (len(methods) + 8) // 4
    figure, parts = method_rows.figure_of_models(
        "Forgetting against keeping the rest", shown, heights, 0.14 * key_rows
    )
    drawn = []
    dots = each if len(seeds) > 1 else shown
    for model, part in parts:
        grid = part.subplots(2, 2, sharex=True, sharey="row")
        runs = dots[dots["model"] == model].assign(setup=shown["setup"].iloc[0])
        for axes, (name, strings) in zip(grid.flat, RATIOS.items(), strict=True):
            draw_ratio(axes, runs, means.loc[model], name, slow)
            axes.set_title(strings, weight="bold")
            places = means.loc[model][["forgetting_quality", name]]
            drawn.append((axes, method_rows.labelled(methods, places)))
        for axes, what in zip(grid[:, 0], ("accuracy", "probability"), strict=True):
            axes.set_ylabel(f"{what}, as a share\nof retraining’s")
        for axes in grid[1]:
            axes.set_xlabel(method_rows.QUALITY)
    elements.legend(
        figure, method_rows.number_key(methods, slow), tradeoff_note(shown, seeds, slow), columns=4
    )
    return point_labels.after_layout(figure, drawn)


def tradeoff_note(shown: pd.DataFrame, seeds: list[int], slow: set) -> str:
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
        "retraining (retrain); dashed: as good as retraining."
        + f" {method_rows.SLOW_NOTE}"
        * bool(slow)
    )


def draw_ratio(
    axes: plt.Axes, runs: pd.DataFrame, means: pd.DataFrame, name: str, slow: set
) -> None:
    axes.axhline(1, **method_rows.IDEAL_LINE)
    setup = runs["setup"].iloc[0]
    for method, of_method in runs.groupby("method", sort=False):
        look = method_rows.setup_look(setup, method, slow)
        dots = {"marker": ".", "markersize": 2.5, "color": look["color"], "alpha": 0.5}
        elements.draw_dots(axes, of_method["forgetting_quality"], of_method[name], **dots)
        axes.plot(*means.loc[method, ["forgetting_quality", name]], linestyle="none", **look)
    method_rows.unit_axis(axes, "", runs["forgetting_quality"].max())
    axes.margins(y=0.1)
    if "repetition" not in runs:
        draw_intervals(axes, runs, name)


def draw_intervals(axes: plt.Axes, runs: pd.DataFrame, name: str) -> None:
    axes.autoscale_view()
    axes.set_autoscale_on(False)
    across, up = (
        intervals_over_seeds(runs, ["method"], value).reset_index()
        for value in ("forgetting_quality", name)
    )
    for x, y in zip(across.itertuples(), up.itertuples(), strict=True):
        colour = style.END if x.method in method_rows.ENDS else "0.35"
        axes.errorbar(
            x.mean, y.mean, xerr=method_rows.reach(x), yerr=method_rows.reach(y), linestyle="none",
            color=colour, elinewidth=0.5, alpha=0.35, zorder=1,
        )  # fmt: skip
