"""The figure of memorisation before and after unlearning, under every measure."""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from palimpsest.figures import curves, style
from palimpsest.unlearning.figures import methods as shared

BEFORE_LINE = {"color": "0.25", "linestyle": "-", "linewidth": 0.9, "zorder": 1}


@style.styled
def unlearning_memorisation(memorisation: pd.DataFrame) -> Figure:
    """The share of the forget strings memorised before and after each method, a panel per measure.

    Parameters
    ----------
    memorisation : tables `unlearning_memorisation` of one language

    Source: the figure is Palimpsest's own.
    """
    shares = memorised(memorisation)
    rows = shared.with_ends(in_order(shares), shares["method"])
    models = list(shares["model"].unique())
    heights = dict.fromkeys(models, 0.8 + shared.ROW_HEIGHT * len(rows))
    figure = shared.titled(
        "Forgotten under which measure", memorisation, 0.75 + sum(heights.values())
    )
    inner = curves.panels_in(figure)
    for model, part in shared.of_models(inner, heights):
        draw_measures(part, shares[shares["model"] == model], rows)
    handles = [
        Line2D([], [], label="before unlearning", **BEFORE_LINE),
        Line2D([], [], label="after", color="0.3", marker="o", markersize=shared.MARKER),
        shared.ideal_handle("retrained models"),
    ]
    note = (
        f"Share of {memorisation['string_id'].nunique()} forget strings that a model memorises, "
        "mean over the models of each kind. A bar goes from the share before unlearning to the "
        "share after it."
    )
    curves.legend(figure, handles, note)
    return figure


def memorised(memorisation: pd.DataFrame) -> pd.DataFrame:
    """Shares of models that memorise (before, after, retrained): means over the forget strings.

    Returns one row per model, method, measure and evidence.
    """
    keys = ["model", "method", "measure", "evidence"]
    return (
        memorisation.groupby(keys, sort=False)[["before", "after", "retrained"]]
        .mean()
        .reset_index()
    )


def in_order(shares: pd.DataFrame) -> list[str]:
    """The methods, sorted by memorisation after unlearning (lowest first), over all models."""
    return shared.best_first(-shares.groupby("method", sort=False)["after"].mean())


def draw_measures(figure: Figure, shares: pd.DataFrame, rows: list[str]) -> None:
    """A panel per measure and evidence, a row per method."""
    pairs = kinds(shares)
    panels = figure.subplots(1, len(pairs), sharey=True, squeeze=False)[0]
    for axes, (measure, evidence) in zip(panels, pairs, strict=True):
        found = shares[(shares["measure"] == measure) & (shares["evidence"] == evidence)]
        draw_shares(axes, found, rows, style.MEASURES[measure].colour)
        shared.part_ends(axes, rows)
        curves.name_panel(axes, measure)
        if sum(measure == other for other, _ in pairs) > 1:
            axes.set_title(f"{axes.get_title(loc='left')}\n{evidence}")
    shared.name_rows(panels[0], rows)
    figure.supxlabel("share of forget strings memorised (0 to 1)", fontsize=8)


def kinds(shares: pd.DataFrame) -> list[tuple[str, str]]:
    """Measures in the order of all figures, each with its evidences."""
    pairs = shares[["measure", "evidence"]].drop_duplicates()
    return [
        (measure, evidence)
        for measure in style.measures_in(pairs["measure"])
        for evidence in pairs.loc[pairs["measure"] == measure, "evidence"]
    ]


def draw_shares(axes: Axes, shares: pd.DataFrame, rows: list[str], colour: str) -> None:
    """A bar from before to after in every row; lines for the original and retrained models."""
    axes.axvline(shares["before"].mean(), **BEFORE_LINE)
    axes.axvline(shares["retrained"].mean(), **shared.IDEAL_LINE)
    for row in shares.itertuples():
        y = rows.index(row.method)
        look = style.END if row.method in shared.ENDS else colour
        axes.hlines(y, row.before, row.after, color=look, linewidth=1.6, alpha=0.55)
        axes.plot(row.after, y, marker="o", markersize=shared.MARKER, color=look)
    shared.unit_axis(axes, "")
