"""Distributions of the measures over the neurons and pairs of activations of a user's own."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.information import kinds
from palimpsest.information.figures import palette
from palimpsest.information.figures.distributions import (
    WIDTH,
    draw_area,
    draw_centres,
    layers_of,
)
from palimpsest.information.paper import PAPER
from palimpsest.information.trends import ENTROPY, INFORMATION

FIGURE = Figure(
    __name__,
    order=60,
    chapter="given",
    title="Neurons of given models",
    caption=(
        "The entropy of neurons, with bins of the whole range and of one without outliers, "
        "and the mutual information of pairs, by model and layer. See whether mutual "
        "information is above its placebo, and what changes from model to model."
    ),
    numbers="8 and 10",
    paper=PAPER,
    tables=(kinds.GIVEN_NEURONS, kinds.GIVEN_PAIRS),
    some_empty=(kinds.GIVEN_PAIRS,),
    drawn_for="group",
)
TRIMMED = "trimmed_entropy"
LABELS = {
    ENTROPY: "entropy\n(nats)",
    TRIMMED: "trimmed entropy\n(nats)",
    INFORMATION: "mutual information\n(nats)",
}
COLOURS = {
    ENTROPY: palette.MEASURES[ENTROPY].colour,
    TRIMMED: "#C06A5A",
    INFORMATION: palette.MEASURES[INFORMATION].colour,
}
MOST_NAMES = 8  # of models that fit side by side without turning their names


@style.styled
def given_distributions(neurons: pd.DataFrame, pairs: pd.DataFrame) -> plt.Figure:
    """The measures of all neurons and pairs, from tables of one group of given activations.

    Source: the paper's figures 8 and 10.
    """
    names = groups_of(neurons)
    layers = layers_of(neurons)
    figure = elements.figure_of(1.5 * len(layers) + 1.2, title_of("Neurons and pairs", neurons))
    inner = elements.panels_in(figure)
    grid = inner.subplots(len(layers), len(LABELS), sharex=True, squeeze=False)
    varying = neurons[~neurons["is_degenerate"]]
    for line, layer in zip(grid, layers, strict=True):
        title = neurons.loc[neurons["layer"] == layer, "layer_name"].iloc[0]
        for axes, (column, label) in zip(line, LABELS.items(), strict=True):
            rows = pairs if column == INFORMATION else varying
            draw_models(axes, rows[rows["layer"] == layer], column, names)
            axes.set_ylabel(label)
            axes.set_title(title if title.startswith("layer") else f"layer {title}")
    for axes in grid[-1]:
        turned = len(names) > MOST_NAMES
        axes.set_xticks(range(len(names)), names, rotation=90 if turned else 0)
        axes.set_xlabel("dose" if has_doses(neurons) else "model")
    note = (
        "Areas: distributions over all neurons that vary, or over pairs; lines: medians; points: "
        "means of each seed. Grey: the same pairs with samples in a random order, the placebo. "
        "Trimmed: without the outermost 1 % of the samples at both ends."
    )
    handles = [
        elements.bar_handle(label.replace("\n(nats)", ""), COLOURS[column])
        for column, label in LABELS.items()
    ]
    handles.append(elements.bar_handle("placebo", palette.PLACEBO))
    elements.legend(figure, handles, note)
    return figure


def title_of(what: str, table: pd.DataFrame) -> str:
    n = table["model"].nunique()
    return f"{what}: group {table['language'].iloc[0]}, {elements.counted(n, 'model')}"


def has_doses(table: pd.DataFrame) -> bool:
    return bool(table["dose"].notna().all())


def of_group(table: pd.DataFrame) -> pd.Series:
    """What the models of each row are named by: their dose if all have one, or else their name."""
    if has_doses(table):
        return table["dose"].map("{:g}".format)
    return table["model"]


def groups_of(table: pd.DataFrame) -> list[str]:
    """The names on the axis of models: doses that rise, or models in the order of the table."""
    ordered = table.sort_values("dose", kind="stable") if has_doses(table) else table
    return list(dict.fromkeys(of_group(ordered)))


def draw_models(axes: plt.Axes, rows: pd.DataFrame, column: str, names: list[str]) -> None:
    named = of_group(rows) if len(rows) else None
    for place, name in enumerate(names):
        own = rows[named == name].dropna(subset=[column]) if len(rows) else rows
        if own.empty:
            continue
        draw_area(axes, place, own[column].to_numpy(), style.tinted(COLOURS[column], 0.6))
        if column == INFORMATION:
            draw_area(axes, place, own["permuted"].to_numpy(), palette.PLACEBO, WIDTH / 2)
        draw_centres(axes, place, own, column, COLOURS[column])
    axes.set_xlim(-0.6, len(names) - 0.4)
    axes.grid(False, axis="x")
