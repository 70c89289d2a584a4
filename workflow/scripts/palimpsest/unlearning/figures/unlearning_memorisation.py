"""Memorisation before and after unlearning, under every measure."""

from __future__ import annotations

from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.unlearning import kinds
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.figures import seeds as by_seed

FIGURE = Figure(
    __name__,
    order=20,
    chapter="unlearning",
    title="Forgotten under which measure",
    caption=(
        "The share of forget strings that is memorised before (light) and after unlearning "
        "(dark), by measure. See whether dark bars end at the dashed line of models that "
        "never saw the strings, and grey bars of unseen strings are as long as that of "
        "retraining."
    ),
    tables=(kinds.MEMORISATION,),
)
FORGET, PLACEBO = "forget", "placebo"
VALUES = ["before", "after", "retrained"]
KEYS = ["model", "method", "string_role", "measure", "evidence"]
LIGHT = 0.3
PLACEBO_COLOUR = "0.6"
FEWEST_ANSWERABLE = 6  # forget strings of all seeds; a mean of fewer is not drawn
ROW_HEIGHT = 0.25  # inches, of a method


@style.styled
def unlearning_memorisation(memorisation: pd.DataFrame) -> plt.Figure:
    """The share of the forget strings memorised before and after each method, a panel per measure.

    Source: the figure is Palimpsest's own.
    """
    shares = memorised(memorisation)
    rows = method_rows.with_ends(in_order(shares), memorisation["method"])
    models, seeds = list(memorisation["model"].unique()), by_seed.seeds_in(memorisation)
    heights = dict.fromkeys(models, 0.95 + ROW_HEIGHT * len(rows))
    figure, parts = method_rows.figure_of_models(
        "Forgotten under which measure", memorisation, heights, 0.9
    )
    for model, part in parts:
        draw_measures(
            part,
            shares[shares["model"] == model],
            memorisation[memorisation["model"] == model],
            rows,
        )
    handles = [
        elements.bar_handle("before unlearning", style.tinted("#555555", LIGHT)),
        elements.bar_handle("after", "#555555"),
        method_rows.ideal_handle("retrained models: the goal"),
        elements.bar_handle("strings that no model was trained on, after", PLACEBO_COLOUR),
    ]
    note = (
        "Share of models that memorise a string, mean over the strings that a measure can answer "
        "for (asked). Thin grey bars: the same for an equally hard string that no model was "
        "trained on; they should be as long as that of retrain."
    )
    if len(seeds) > 1:
        note += f" Bars: mean over {len(seeds)} seeds; dots: the seeds; lines: 95 % intervals."
    elements.legend(figure, handles, note)
    return figure


def memorised(memorisation: pd.DataFrame) -> pd.DataFrame:
    answerable = memorisation[memorisation["answerable"].astype(bool)]
    return by_seed.of_seeds(answerable, KEYS, VALUES)


def in_order(shares: pd.DataFrame) -> list[str]:
    forget = shares[shares["string_role"] == FORGET]
    return method_rows.best_first(-forget.groupby("method", sort=False)["after"].mean())


def draw_measures(
    figure: plt.Figure, shares: pd.DataFrame, memorisation: pd.DataFrame, rows: list[str]
) -> None:
    pairs = style.measures_with_evidence(memorisation)
    panels = figure.subplots(1, len(pairs), sharey=True, squeeze=False)[0]
    for axes, (measure, evidence) in zip(panels, pairs, strict=True):
        of_panel = (memorisation["measure"] == measure) & (memorisation["evidence"] == evidence)
        found = shares[(shares["measure"] == measure) & (shares["evidence"] == evidence)]
        axes.set_xlim(-0.04, 1.04)
        n_answerable, counted = how_many(memorisation[of_panel])
        if n_answerable >= FEWEST_ANSWERABLE:
            draw_shares(axes, found, rows, style.MEASURES[measure].colour)
        else:
            middle = (len(rows) - 1) / 2
            text = "too few strings asked" if n_answerable else "no string asked"
            axes.text(0.5, middle, text, ha="center", va="center", rotation=90)
        method_rows.unit_axis(axes, "")
        method_rows.part_ends(axes, rows)
        elements.name_panel(axes, measure)
        repeated = sum(measure == other for other, _ in pairs) > 1
        about = [axes.get_title(loc="left"), *([evidence] if repeated else []), counted]
        axes.set_title("\n".join(about))
    method_rows.name_rows(panels[0], rows)
    figure.supxlabel("share memorised (0 to 1)")


def how_many(rows: pd.DataFrame) -> tuple[int, str]:
    strings = rows[rows["string_role"] == FORGET].drop_duplicates(["seed", "string_id"])
    n_answerable = int(strings["answerable"].sum())
    return n_answerable, f"{n_answerable} of {len(strings)} asked"


def draw_shares(axes: plt.Axes, shares: pd.DataFrame, rows: list[str], colour: str) -> None:
    forget, placebo = (shares[shares["string_role"] == kind] for kind in (FORGET, PLACEBO))
    axes.axvline(
        forget["retrained"].mean(), **{**method_rows.IDEAL_LINE, "color": "0.25", "zorder": 3}
    )
    for method, group in forget.groupby("method", sort=False):
        y = rows.index(method)
        full = style.END if method in method_rows.ENDS else colour
        axes.barh(y, group["before"].mean(), 0.62, color=style.tinted(full, LIGHT), linewidth=0)
        axes.barh(y, group["after"].mean(), 0.34, color=full, linewidth=0)
        if len(group) > 1:
            look = {"marker": "o", "markersize": 2.2, "color": "black", "zorder": 4}
            elements.draw_dots(axes, group["after"], [y] * len(group), **look)
    for method, group in placebo.groupby("method", sort=False):
        y = rows.index(method) + 0.4
        axes.barh(y, group["after"].mean(), 0.13, color=PLACEBO_COLOUR, linewidth=0)
    for row in intervals_over_seeds(forget, ["method"], "after").reset_index().itertuples():
        axes.errorbar(
            row.mean, rows.index(row.method), xerr=method_rows.reach(row), linestyle="none",
            color="black", elinewidth=0.6, zorder=4,
        )  # fmt: skip
