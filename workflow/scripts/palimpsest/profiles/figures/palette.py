"""What the figures of profiles share: colours of models and estimators, labels, bands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from palimpsest.figures import elements, style
from palimpsest.figures.libraries import pd, plt
from palimpsest.lazy_import import lazy_import
from palimpsest.profiles.kinds import DIFFERENCE, DIFFERENCE_IN_DIFFERENCES

summaries = lazy_import("palimpsest.profiles.summaries")

# No measure and no set-up has these colours.
MODELS = "#332288"
ESTIMATORS = {
    DIFFERENCE: style.Look("difference", "#C2A000"),
    DIFFERENCE_IN_DIFFERENCES: style.Look("difference-in-differences", MODELS),
}
# The names of contrasts of one factor, and of none
CONTRASTS = {
    "mean": "mean of all cells",
    "copies": "more minus fewer copies",
    "position": "late minus early",
    "size": "more minus less data",
}
EFFECT = "effect (nats)"
MACRO_BATCH = "macro-batch of the strings"
FILLED = "Filled markers: the band excludes 0."


def tints(names: Sequence) -> dict:
    return {n: style.tinted(MODELS, (place + 1) / len(names)) for place, n in enumerate(names)}


def of_models(table: pd.DataFrame) -> dict[str, tuple[float, float, float]]:
    return tints(summaries.by_size(table))


def banded(axes: plt.Axes, rows: pd.DataFrame, x: str, colour, **line) -> None:
    """A curve of estimates over `x` with its band. Filled markers are significant."""
    rows = rows.sort_values(x)
    elements.draw_band(axes, rows[x], rows["lower"], rows["upper"], colour)
    axes.plot(rows[x], rows["estimate"], color=colour, **line)
    for significant, fill in ((True, colour), (False, "white")):
        some = rows[rows["significant"] == significant]
        axes.plot(
            some[x], some["estimate"], "o", markersize=3.5, color=colour, markerfacecolor=fill
        )


def handles(table: pd.DataFrame) -> list:
    return [elements.line_handle(model, colour) for model, colour in of_models(table).items()]


def figure_of(
    height: float, title: str, table: pd.DataFrame, models: Iterable[str] = ()
) -> plt.Figure:
    """A figure whose title names language, stream and, if given, models; `height` in inches."""
    subject = f"language {table['language'].iloc[0]}, {table['size'].iloc[0]} strings seen once"
    return elements.figure_of(height, f"{title}: {', '.join([subject, *models])}")


def runs_note(table: pd.DataFrame) -> str:
    n = table["n_seeds"].iloc[0]
    return (
        f"Mean over {elements.counted(n, 'run')} of each model; bands: simultaneous, 95 %, over "
        "strings."
    )


def markers_note(table: pd.DataFrame) -> str:
    return f"{runs_note(table)} {FILLED}"


def draw_models(axes: plt.Axes, rows: pd.DataFrame, x: str) -> None:
    axes.axhline(0, **elements.ZERO)
    for model, colour in of_models(rows).items():
        banded(axes, rows[rows["model"] == model], x, colour)


def of_panels(table: pd.DataFrame) -> pd.DataFrame:
    """The cells of panels by difference-in-differences."""
    return table[table["estimator"] == DIFFERENCE_IN_DIFFERENCES]


def of_first_outcome(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of each panel's own outcome, which comes first."""
    first = table.groupby("panel", sort=False)["outcome"].transform("first")
    return table[table["outcome"] == first]


def effect_on(cells: pd.DataFrame) -> str:
    """The label of an axis of effects in panels."""
    outcome = cells["outcome"].iloc[0].replace("_", " ")
    return f"effect on minus the {outcome}" if cells["is_loss"].iloc[0] else f"effect on {outcome}"
