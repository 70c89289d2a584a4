"""The density of the training strings at every test string, by what was leaked."""

from __future__ import annotations

import math

from palimpsest.density import kinds
from palimpsest.density.figures import palette
from palimpsest.density.kinds import LEAKED, NEVER
from palimpsest.density.paper import PAPER
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.lazy_import import lazy_import
from palimpsest.statistics import student

leakage_tables = lazy_import("palimpsest.density.leakage_tables")

FIGURE = Figure(
    __name__,
    order=10,
    chapter="leakage",
    title="Density at leaked strings",
    caption=(
        "The density of the training strings at every test string, by exact copies (rows) and "
        "paraphrases (columns) of the leaked strings. See how far leaked strings rise above "
        "those never leaked, and that placebos do not."
    ),
    numbers="3 and 7",
    paper=PAPER,
    tables=(kinds.LEAKAGE,),
)
SPREAD = 0.34  # half the width of a strip of points
GOLDEN = (math.sqrt(5) - 1) / 2  # its multiples are spread evenly, in any order
LOWEST = 0.01  # share of the points that may be below the panels
ONE_STRING = {"color": "0.45", "linewidth": 1.0, "linestyle": (0, (1, 1.6))}


@style.styled
def density_leakage(table: pd.DataFrame) -> plt.Figure:
    """The density at every test string of every condition, from tables `leakage` of one language.

    Source: LMD3, figure 3 (histograms) and figure 7.
    """
    embeddings = list(table["embedding"].unique())
    n_rows = len(embeddings) * table["n_copies"].nunique()
    figure = elements.figure_of(1.5 * n_rows + 1.3, "Density at leaked strings", table)
    inner = elements.panels_in(figure)
    parts = np.atleast_1d(inner.subfigures(len(embeddings), 1))
    for part, embedding in zip(parts, embeddings, strict=True):
        draw_embedding(part, table[table["embedding"] == embedding])
        part.supylabel(f"{palette.of_embedding(embedding).label}: log density")
    n = table["seed"].nunique()
    over = f"mean over the seeds, {elements.PERCENT} interval" if n > 1 else "one seed"
    note = (
        f"Each point: a test string in a run, {elements.counted(n, 'seed')}; lines: medians. "
        f"{palette.setting(table).capitalize()}; natural logarithm. A number at the bottom: points "
        "below the panel. AUC: probability that a leaked string has a higher density than one "
        f"never leaked ({over}; 0.5 is chance)."
    )
    handles = [elements.look_handle(look) for look in palette.STRINGS.values()]
    single = elements.line_handle("one training string at the same place, alone", **ONE_STRING)
    elements.legend(figure, [*handles, single], note)
    return figure


def draw_embedding(part: plt.Figure, rows: pd.DataFrame) -> None:
    copies, paraphrases = (sorted(rows[name].unique()) for name in ("n_copies", "paraphrases"))
    panels = part.subplots(len(copies), len(paraphrases), sharex=True, sharey=True, squeeze=False)
    values = rows["log_density"]
    low = min(values.quantile(LOWEST), -np.log(rows["size"].iloc[0]))
    margin = 0.07 * (values.max() - low)
    panels[0, 0].set_ylim(low - 3 * margin, values.max() + margin)
    for line, n_copies in zip(panels, copies, strict=True):
        for axes, number in zip(line, paraphrases, strict=True):
            own = rows[(rows["n_copies"] == n_copies) & (rows["paraphrases"] == number)]
            draw_strips(axes, own, low - margin)
            axes.set_title(f"{condition(n_copies, number)}\n{separation(own)}")


def condition(n_copies: int, paraphrases: int) -> str:
    words = ["1 copy"] if n_copies else []
    if paraphrases:
        words.append(elements.counted(paraphrases, "paraphrase"))
    return " + ".join(words) or "no leak"


def separation(rows: pd.DataFrame) -> str:
    """Mean and interval of the area under the curve: leaked strings against never leaked ones."""
    areas = []
    for _, run in rows.groupby("seed"):
        leaked, never = (
            run.loc[run["string_role"] == role, "log_density"].to_numpy()
            for role in (LEAKED, NEVER)
        )
        areas.append(leakage_tables.auc(leaked, never))
    mean, lower, upper = student(areas)
    ends = "" if np.isnan(lower) else f" ({max(0, lower):.2f} to {min(1, upper):.2f})"
    return f"AUC {mean:.2f}{ends}"


def draw_strips(axes: plt.Axes, rows: pd.DataFrame, low: float) -> None:
    """Points below `low` are not drawn: an arrow gives their number."""
    axes.axhline(-np.log(rows["size"].iloc[0]), **ONE_STRING, zorder=1.5)
    for place, (strings, look) in enumerate(palette.STRINGS.items()):
        values = rows.loc[rows["string_role"] == strings, "log_density"].sort_values().to_numpy()
        if not len(values):
            continue
        shifts = (2 * ((np.arange(len(values)) * GOLDEN) % 1) - 1) * SPREAD
        shape = {"color": look.colour, "markersize": 2.1, "alpha": 0.55, "markeredgewidth": 0}
        shown = values >= low
        axes.plot((place + shifts)[shown], values[shown], look.marker, **shape)
        if not shown.all():
            below = {"fontsize": 6, "ha": "center", "va": "bottom", "color": look.colour}
            transform = axes.get_xaxis_transform()
            axes.text(place, 0.01, f"↓ {(~shown).sum()}", transform=transform, **below)
        ends = [place - SPREAD - 0.06, place + SPREAD + 0.06]
        axes.plot(ends, [np.median(values)] * 2, color=look.colour, linewidth=1.5)
    axes.set_xticks(range(len(palette.STRINGS)), list(palette.STRINGS))
    axes.tick_params(axis="x", length=0)
    axes.grid(False, axis="x")
