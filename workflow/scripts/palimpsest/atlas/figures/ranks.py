"""Rank correlations of measures with exact retraining: a panel per question."""

from __future__ import annotations

from collections.abc import Mapping

from palimpsest.atlas.kinds import AGAIN, RANK
from palimpsest.atlas.titles import title_of
from palimpsest.figures import elements, style
from palimpsest.figures.libraries import np, pd, plt

CEILING = {"color": "0.5", "linewidth": 1, "linestyle": (0, (4, 2)), "zorder": 1}
PLACEBO = {"linestyle": "none", "marker": "x", "color": "0.6", "markersize": 4, "zorder": 2}
ROW = 0.2  # inches
LEFT = -0.15  # of the axis, if nothing is below
SHIFT = 0.22  # between models, in rows


def draw_ranks(table: pd.DataFrame, questions: Mapping[str, str], title: str) -> plt.Figure:
    """A figure of some questions, with their titles, from tables `atlas` of one language."""
    ranks = table[table["statistic"] == RANK]
    asked = [question for question in questions if (ranks["question"] == question).any()]
    models = list(dict.fromkeys(zip(table["model"], table["size"], strict=True)))
    shown = {question: _measures(ranks[ranks["question"] == question]) for question in asked}
    heights = [len(names) + 1.5 for names in shown.values()]
    figure = elements.figure_of(ROW * (sum(heights) + 6), title, table)
    panels = elements.panels_in(figure).subplots(
        len(asked), 1, sharex=True, squeeze=False, height_ratios=heights
    )[:, 0]
    for axes, (question, names) in zip(panels, shown.items(), strict=True):
        _draw(axes, ranks[ranks["question"] == question], names, models)
        axes.set_title(questions[question], weight="bold")
    lowest = ranks.loc[ranks["question"].isin(asked), ["value", "lower", "placebo"]].min().min()
    panels[-1].set_xlim(max(-1.02, min(LEFT, lowest - 0.05)), 1.02)
    panels[-1].set_xlabel("rank correlation with exact retraining (Spearman)")
    handles = [
        elements.line_handle("retraining once more (the ceiling)", **CEILING),
        elements.line_handle("placebo", **PLACEBO),
    ]
    if len(models) > 1:
        handles += [
            elements.marker_handle(
                _name(*cell, models), _colour(n, len(models)), marker=style.marker(cell[0])
            )
            for n, cell in enumerate(models)
        ]
    note = (
        "Points: mean over the seeds; bars: 95 % intervals over strings and seeds (bootstrap). The "
        "number beside a name is the cost with the training of the model, in trainings."
    )
    elements.legend(figure, handles, note)
    return figure


def _colour(number: int, n: int) -> tuple:
    return plt.get_cmap("viridis")(0.15 + 0.6 * number / max(1, n - 1))


def _name(model: str, size: int, cells: list[tuple[str, int]]) -> str:
    """The model's name, with the size where a model has several."""
    several = len({n for name, n in cells if name == model}) > 1
    return f"{model}, {size} strings" if several else model


def _measures(rows: pd.DataFrame) -> list[str]:
    """The measures, the best one first; retraining once more is a line and no row."""
    means = rows[rows["measure"] != AGAIN].groupby("measure")["value"].mean()
    return list(means.sort_values(ascending=False, na_position="last").index)


def _draw(
    axes: plt.Axes, rows: pd.DataFrame, names: list[str], cells: list[tuple[str, int]]
) -> None:
    places = {name: len(names) - 1 - n for n, name in enumerate(names)}
    axes.axvline(0, **elements.ZERO)
    for number, (model, size) in enumerate(cells):
        own = rows[(rows["model"] == model) & (rows["size"] == size)]
        colour = _colour(number, len(cells))
        shift = SHIFT * ((len(cells) - 1) / 2 - number)
        ceiling = own.loc[own["measure"] == AGAIN, "value"]
        if ceiling.notna().any():
            axes.axvline(ceiling.iloc[0], **{**CEILING, "color": colour, "alpha": 0.6})
        for row in own[own["measure"] != AGAIN].itertuples():
            place = places[row.measure] + shift
            axes.plot(
                row.value,
                place,
                color=colour,
                marker=style.marker(model),
                markersize=4,
                linestyle="none",
            )
            if not np.isnan(row.lower):
                axes.plot([row.lower, row.upper], [place, place], color=colour, linewidth=1)
            axes.plot(row.placebo, place, **PLACEBO)
    cost = rows.groupby("measure")["cost"].mean()
    labels = [f"{title_of(name)} ({_trainings(cost[name])})" for name in names]
    axes.set_yticks([places[name] for name in names], labels)
    axes.set_ylim(-0.7, len(names) - 0.3)


def _trainings(cost: float) -> str:
    return f"{cost:.2f}" if cost < 10 else f"{cost:.0f}"
