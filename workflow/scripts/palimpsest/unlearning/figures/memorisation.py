"""The figure of memorisation before and after unlearning, under every measure."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import curves, style
from palimpsest.unlearning.figures import methods as shared
from palimpsest.unlearning.figures import seeds as by_seed

FORGET, PLACEBO = "forget", "placebo"
VALUES = ["before", "after", "retrained"]
KEYS = ["model", "method", "strings", "measure", "evidence"]
LIGHT = 0.3
PLACEBO_COLOUR = "0.6"
FEWEST_ASKED = 6  # forget strings of all seeds; a mean of fewer is not drawn
ROW_HEIGHT = 0.25  # inches, of a method


@style.styled
def unlearning_memorisation(memorisation: pd.DataFrame) -> Figure:
    """The share of the forget strings memorised before and after each method, a panel per measure.

    Parameters
    ----------
    memorisation : tables `unlearning_memorisation` of one language

    Source: the figure is Palimpsest's own.
    """
    shares = memorised(memorisation)
    rows = shared.with_ends(in_order(shares), memorisation["method"])
    models, seeds = list(memorisation["model"].unique()), by_seed.seeds_in(memorisation)
    heights = dict.fromkeys(models, 0.95 + ROW_HEIGHT * len(rows))
    figure = shared.titled(
        "Forgotten under which measure", memorisation, 0.9 + sum(heights.values())
    )
    inner = curves.panels_in(figure)
    for model, part in shared.of_models(inner, heights):
        draw_measures(
            part,
            shares[shares["model"] == model],
            memorisation[memorisation["model"] == model],
            rows,
        )
    handles = [
        curves.bar_handle("before unlearning", style.tinted("#555555", LIGHT)),
        curves.bar_handle("after", "#555555"),
        shared.ideal_handle("retrained models: the goal"),
        curves.bar_handle("strings that no model was trained on, after", PLACEBO_COLOUR),
    ]
    note = (
        "Share of models that memorise a string, mean over the strings that a measure can answer "
        "for (asked). Thin grey bars: the same for an equally hard string that no model was "
        "trained on; they should be as long as that of retrain."
    )
    if len(seeds) > 1:
        note += f" Bars: mean over {len(seeds)} seeds; dots: the seeds; lines: 95 % intervals."
    curves.legend(figure, handles, note)
    return figure


def memorised(memorisation: pd.DataFrame) -> pd.DataFrame:
    """Shares of models that memorise: means over the strings that are asked, for every seed."""
    asked = memorisation[memorisation["asked"].astype(bool)]
    return by_seed.of_seeds(asked, KEYS, VALUES)


def in_order(shares: pd.DataFrame) -> list[str]:
    """The methods, sorted by memorisation after unlearning (lowest first), over all models."""
    forget = shares[shares["strings"] == FORGET]
    return shared.best_first(-forget.groupby("method", sort=False)["after"].mean())


def draw_measures(
    figure: SubFigure, shares: pd.DataFrame, memorisation: pd.DataFrame, rows: list[str]
) -> None:
    """A panel per measure and evidence, a row per method."""
    pairs = kinds(memorisation)
    panels = figure.subplots(1, len(pairs), sharey=True, squeeze=False)[0]
    for axes, (measure, evidence) in zip(panels, pairs, strict=True):
        of_panel = (memorisation["measure"] == measure) & (memorisation["evidence"] == evidence)
        found = shares[(shares["measure"] == measure) & (shares["evidence"] == evidence)]
        axes.set_xlim(-0.04, 1.04)
        n_asked, counted = how_many(memorisation[of_panel])
        if n_asked >= FEWEST_ASKED:
            draw_shares(axes, found, rows, style.MEASURES[measure].colour)
        else:
            middle = (len(rows) - 1) / 2
            text = "too few strings asked" if n_asked else "no string asked"
            axes.text(0.5, middle, text, ha="center", va="center", rotation=90)
        shared.unit_axis(axes, "")
        shared.part_ends(axes, rows)
        curves.name_panel(axes, measure)
        repeated = sum(measure == other for other, _ in pairs) > 1
        about = [axes.get_title(loc="left"), *([evidence] if repeated else []), counted]
        axes.set_title("\n".join(about))
    shared.name_rows(panels[0], rows)
    figure.supxlabel("share memorised (0 to 1)", fontsize=8)


def kinds(memorisation: pd.DataFrame) -> list[tuple[str, str]]:
    """Measures in the order of all figures, each with its evidences."""
    pairs = memorisation[["measure", "evidence"]].drop_duplicates()
    return [
        (measure, evidence)
        for measure in style.measures_in(pairs["measure"])
        for evidence in pairs.loc[pairs["measure"] == measure, "evidence"]
    ]


def how_many(rows: pd.DataFrame) -> tuple[int, str]:
    """The number of forget strings asked under a measure, and a text on it."""
    strings = rows[rows["strings"] == FORGET].drop_duplicates(["seed", "string_id"])
    n_asked = int(strings["asked"].sum())
    return n_asked, f"{n_asked} of {len(strings)} asked"


def draw_shares(axes: Axes, shares: pd.DataFrame, rows: list[str], colour: str) -> None:
    """In every row bars before and after, a bar of the placebos, and the seeds."""
    forget, placebo = (shares[shares["strings"] == kind] for kind in (FORGET, PLACEBO))
    axes.axvline(forget["retrained"].mean(), **{**shared.IDEAL_LINE, "color": "0.25", "zorder": 3})
    for method, group in forget.groupby("method", sort=False):
        y = rows.index(method)
        full = style.END if method in shared.ENDS else colour
        axes.barh(y, group["before"].mean(), 0.62, color=style.tinted(full, LIGHT), linewidth=0)
        axes.barh(y, group["after"].mean(), 0.34, color=full, linewidth=0)
        if len(group) > 1:
            axes.plot(
                group["after"], [y] * len(group), linestyle="none", marker="o", markersize=2.2,
                color="black", markeredgewidth=0, zorder=4,
            )  # fmt: skip
    for method, group in placebo.groupby("method", sort=False):
        y = rows.index(method) + 0.4
        axes.barh(y, group["after"].mean(), 0.13, color=PLACEBO_COLOUR, linewidth=0)
    for row in intervals_over_seeds(forget, ["method"], "after").reset_index().itertuples():
        axes.errorbar(
            row.mean, rows.index(row.method), xerr=shared.reach(row), linestyle="none",
            color="black", elinewidth=0.6, zorder=4,
        )  # fmt: skip
