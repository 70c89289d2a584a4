"""The scores of methods."""

from __future__ import annotations

from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.unlearning import kinds
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.figures import seeds as by_seed
from palimpsest.unlearning.paper import PAPER

FIGURE = Figure(
    __name__,
    order=30,
    chapter="unlearning",
    title="How well methods forget",
    caption=(
        "The forgetting quality of each method, and its final score, which counts what is "
        "lost on other strings, too. See how far it is from the grey strip of models with "
        "exchanged labels, and how far it moves left in the further panels."
    ),
    numbers="4 and 5",
    paper=PAPER,
    tables=(kinds.SUMMARY, kinds.SCORES, kinds.TESTS),
)
SCORES = {
    "forgetting_quality": method_rows.QUALITY,
    "final_score": "final score,\nby accuracy (0 to 1)",
    "final_score_probability": "final score,\nby probability (0 to 1)",
}
NULL = ["null_quality", "null_lower", "null_upper"]
NULL_COLOUR = "0.87"
DODGE = 0.055  # inches that a further set-up adds to a row
SEED_SPACE = 0.1  # inches that seeds add to a row


@style.styled
def unlearning_scores(
    summary: pd.DataFrame, scores: pd.DataFrame, tests: pd.DataFrame
) -> plt.Figure:
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
    height = method_rows.ROW_HEIGHT + DODGE * (len(setups) - 1) + SEED_SPACE * (len(seeds) > 1)
    heights = {
        model: 0.85 + height * rows["method"].nunique()
        for model, rows in shown.groupby("model", sort=False)
    }
    figure, parts = method_rows.figure_of_models("How well methods forget", shown, heights, 1.0)
    slow = set()
    for model, part in parts:
        slow_here = method_rows.slow_methods(scores[scores["model"] == model])
        slow |= slow_here
        of_model = shown[shown["model"] == model]
        draw_scores(part, of_model, tests[tests["model"] == model], setups, slow_here)
    handles = [
        *(
            elements.look_handle(look, f"set-up {look.label}", markersize=method_rows.MARKER)
            for look in (style.SETUPS[setup] for setup in setups)
        ),
        elements.bar_handle("relabelled models, 95 % of the relabellings", NULL_COLOUR),
        method_rows.ideal_handle("their mean; on the right: retraining (first set-up)"),
    ]
    note = by_seed.note(seeds) or method_rows.repetitions_note(int(shown["n_repetitions"].max()))
    if len(seeds) > 1:
        note += " Strips: mean of the seeds' bands; to be inside is no test."
    elif (shown["lower"].isna() & (shown["n_repetitions"] > 1)).any():
        note += " No bar: the same models in every repetition."
    elements.legend(figure, handles, f"{note} {method_rows.SLOW_NOTE}" if slow else note)
    return figure


def draw_scores(
    figure: plt.Figure, summary: pd.DataFrame, tests: pd.DataFrame, setups: list[str], slow: set
) -> None:
    quality = method_rows.of_main_setup(summary[summary["quantity"] == "forgetting_quality"])
    methods = method_rows.best_first(quality.groupby("method", sort=False)["mean"].mean())
    rows = method_rows.with_ends(methods, summary["method"])
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
                row.mean, y, xerr=method_rows.reach(row), linestyle="none", elinewidth=0.8,
                **method_rows.setup_look(row.setup, row.method, slow),
            )  # fmt: skip
        method_rows.unit_axis(axes, SCORES[quantity], highest)
        method_rows.part_ends(axes, rows)
    method_rows.name_rows(panels[0], rows, slow)


def averaged(summary: pd.DataFrame) -> pd.DataFrame:
    """Mean and interval over the seeds; over the repetitions if there is only one seed."""
    if summary["seed"].nunique() == 1:
        return summary
    keys = ["method", "setup", "quantity"]
    values = summary.drop(columns=["lower", "upper"]).rename(columns={"mean": "value"})
    return intervals_over_seeds(values, keys, "value").reset_index()


def draw_null(axes: plt.Axes, tests: pd.DataFrame, rows: list[str]) -> None:
    for method, null in tests.groupby("method", sort=False)[NULL].mean().iterrows():
        if method in rows:
            y = rows.index(method)
            axes.barh(
                y, null["null_upper"] - null["null_lower"], height=1, left=null["null_lower"],
                color=NULL_COLOUR, linewidth=0, zorder=0,
            )  # fmt: skip
            axes.plot([null["null_quality"]] * 2, [y - 0.5, y + 0.5], **method_rows.IDEAL_LINE)


def draw_seeds(axes: plt.Axes, found: pd.DataFrame, rows: list[str], setups: list[str]) -> None:
    below = 0.3 / len(setups)
    for (setup, method), group in found.groupby(["setup", "method"], sort=False):
        y = rows.index(method) + dodged(setups.index(setup), len(setups)) + below
        look = method_rows.setup_look(setup, method)
        by_seed.draw_seeds(axes, group["mean"], y, look)


def draw_ideal(axes: plt.Axes, found: pd.DataFrame) -> None:
    ideal = method_rows.of_main_setup(found)
    ideal = ideal.loc[ideal["method"] == "retrain", "mean"]
    if len(ideal):
        axes.axvline(ideal.mean(), **method_rows.IDEAL_LINE)


def dodged(index: int, n: int) -> float:
    """Offset in its row of one of `n` markers, from -0.31 to 0.31 rows."""
    return 0.62 * ((index + 0.5) / n - 0.5) if n > 1 else 0.0
