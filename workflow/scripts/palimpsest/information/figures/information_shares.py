"""Means by the share of training strings that are marked, or whose answers are permuted."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.information import kinds, trends
from palimpsest.information.figures import palette
from palimpsest.information.kinds import MARKERS, SHUFFLES
from palimpsest.information.paper import PAPER
from palimpsest.statistics import student

FIGURE = Figure(
    __name__,
    order=30,
    chapter="diversity",
    title="Means by what is memorised",
    caption=(
        "Means of entropy and mutual information, accuracy, and the share of memorised "
        "strings, by alpha (left) and beta (right). See whether the trends have the same "
        "direction at every depth."
    ),
    numbers="9",
    paper=PAPER,
    tables=(kinds.INFORMATION,),
)
LABELS = {
    trends.ENTROPY: "entropy\n(mean, nats)",
    trends.INFORMATION: "mutual information\n(mean, nats)",
    trends.ACCURACY: "right answers\n(share, 0 to 1)",
    trends.MEMORISED: "memorised strings\n(share, 0 to 1)",
}
SHARES = (trends.ACCURACY, trends.MEMORISED)
KINDS_OF_STRINGS = {
    "accuracy_agrees": ("marker agrees", (0, (4, 1.5))),
    "accuracy_disagrees": ("marker disagrees", (0, (1, 1.2))),
}
TITLES = {
    MARKERS: "alpha: share of markers that are the answer",
    SHUFFLES: "beta: share of answers that are permuted",
}
SEED_POINT = {"markersize": 2.2, "linestyle": "none", "alpha": 0.6, "markeredgewidth": 0}
JITTER = 0.018


@style.styled
def information_shares(table: pd.DataFrame) -> plt.Figure:
    """Means of every run by share, from tables `information` of one language.

    Source: the paper's figure 9, with accuracy and memorised strings.
    """
    rows = palette.shown(table)
    models, interventions = palette.models_in(rows), palette.interventions_in(rows)
    figure = elements.figure_of(7.4, "What memorisation changes", rows)
    grid = figure.subplots(
        len(LABELS), len(interventions), sharex=True, sharey="row", squeeze=False
    )
    for line, (column, label) in zip(grid, LABELS.items(), strict=True):
        for axes, intervention in zip(line, interventions, strict=True):
            draw_column(axes, rows[rows["intervention"] == intervention], models, column)
        line[0].set_ylabel(label)
        if column in SHARES:
            elements.share_axis(line[0])
    for axes, intervention in zip(grid[0], interventions, strict=True):
        colour = palette.INTERVENTIONS[intervention].colour
        axes.set_title(TITLES[intervention], color=style.darkened(colour), weight="bold")
    for axes, intervention in zip(grid[-1], interventions, strict=True):
        axes.set_xlabel(f"{trends.GREEK[intervention]} (share, 0 to 1)")
        shares = sorted(rows["share"].unique())
        axes.set_xticks(shares, [f"{share:g}" for share in shares])
    note = (
        f"{palette.site_note(rows)} Means over neurons or pairs, then over layers. Small points: "
        f"seeds. {elements.intervals_note(rows, 'Large points')} Placebos: pairs of neurons whose "
        "strings are in a random "
        "order; held-out strings. Memorised: the loss at the end of training is below the "
        "Bayes-optimal loss."
    )
    elements.legend(figure, handles(rows, models), note)
    return figure


def draw_column(axes: plt.Axes, rows: pd.DataFrame, models: list[str], column: str) -> None:
    """A line for each model, and the placebo or the kinds of strings over all models."""
    colour = palette.INTERVENTIONS[rows["intervention"].iloc[0]].colour
    if column in trends.PLACEBOS:
        draw_means(
            axes, rows, trends.PLACEBOS[column][0], color=palette.PLACEBO, marker="D", markersize=3
        )
    if column == trends.ACCURACY:
        for name, (_, line) in KINDS_OF_STRINGS.items():
            draw_means(axes, rows, name, color="0.35", linestyle=line, marker="", elinewidth=0.6)
    for place, model in enumerate(models):
        own = rows[rows["model"] == model]
        shift = JITTER * (place - (len(models) - 1) / 2)
        strength = style.model_tints(models)[model]
        look = elements.model_marker(model, models, colour)
        draw_seeds(axes, own, column, shift, look["marker"], colour)
        line = style.tinted(colour, 0.35 + 0.65 * strength)
        draw_means(axes, own, column, shift, color=line, **look)


def by_seed(rows: pd.DataFrame, column: str) -> pd.DataFrame:
    runs = rows.groupby(trends.RUN)[column].mean()
    return runs.groupby(level=["seed", "share"]).mean().unstack("share")


def draw_means(axes: plt.Axes, rows: pd.DataFrame, column: str, shift: float = 0, **look) -> None:
    values = by_seed(rows, column)
    found = pd.DataFrame([student(own.dropna()) for _, own in values.items()], index=values.columns)
    found = found[found["mean"].notna()]
    if column not in (trends.ENTROPY, trends.INFORMATION, trends.PLACEBOS[trends.INFORMATION][0]):
        found = found.clip(0, 1)
    elements.draw_means(axes, found.index.to_numpy() + shift, found, **{"linewidth": 1.1, **look})


def draw_seeds(axes, rows: pd.DataFrame, column: str, shift: float, marker: str, colour) -> None:
    values = by_seed(rows, column)
    for share, own in values.items():
        axes.plot([share + shift] * len(own), own, marker=marker, color=colour, **SEED_POINT)


def handles(rows: pd.DataFrame, models: list[str]) -> list:
    depths = rows.groupby("model")["n_layers"].first()
    found = [
        elements.line_handle(
            f"{model}, {elements.counted(depths[model], 'layer')}", "0.3",
            **elements.model_marker(model, models, "0.3"),
        )
        for model in models
    ]  # fmt: skip
    found += [
        elements.line_handle(words, "0.35", linestyle=line)
        for words, line in KINDS_OF_STRINGS.values()
    ]
    return [*found, elements.marker_handle("placebo", palette.PLACEBO, "D", size=3.5)]
