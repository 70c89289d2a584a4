"""What leakage does to the density at a test string, and to performance on it."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from palimpsest.density.figures import looks
from palimpsest.density.kinds import LEAKED, NEVER
from palimpsest.density.leakage_tables import auc, once
from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import curves, style
from palimpsest.statistics import student

SPREAD = 0.34  # half the width of a strip of points
GOLDEN = (np.sqrt(5) - 1) / 2  # its multiples are spread evenly, in any order
LOWEST = 0.01  # share of the points that may be below the panels
ONE_STRING = {"color": "0.45", "linewidth": 1.0, "linestyle": (0, (1, 1.6))}
OUTCOMES = {"answer_right": looks.ACCURACY_LABEL, "perplexity": looks.PERPLEXITY_LABEL}


@style.styled
def density_leakage(table: pd.DataFrame) -> Figure:
    """The density at every test string of every condition, from tables `leakage` of one language.

    Source: LMD3, figure 3 (histograms) and figure 7.
    """
    embeddings = list(table["embedding"].unique())
    n_rows = len(embeddings) * table["exact"].nunique()
    figure = curves.figure_of(
        1.5 * n_rows + 1.3, f"Density at leaked strings: {curves.subject(table)}"
    )
    inner = curves.panels_in(figure)
    parts = np.atleast_1d(inner.subfigures(len(embeddings), 1))
    for part, embedding in zip(parts, embeddings, strict=True):
        draw_embedding(part, table[table["embedding"] == embedding])
        part.supylabel(f"{looks.of_embedding(embedding).label}: log density", fontsize=8)
    n = table["seed"].nunique()
    over = f"mean over the seeds, {looks.PERCENT} interval" if n > 1 else "one seed"
    note = (
        f"Each point: a test string in a run, {n} seed{'s' if n > 1 else ''}; lines: medians. "
        f"{looks.setting(table).capitalize()}; natural logarithm. A number at the bottom: points "
        "below the panel. AUC: probability that a leaked string has a higher density than one "
        f"never leaked ({over}; 0.5 is chance)."
    )
    handles = [look.handle() for look in looks.STRINGS.values()]
    single = Line2D([], [], label="one training string at the same place, alone", **ONE_STRING)
    curves.legend(figure, [*handles, single], note)
    return figure


def draw_embedding(part: Figure, rows: pd.DataFrame) -> None:
    """A panel for each condition: copies in rows, paraphrases in columns."""
    copies, paraphrases = (sorted(rows[name].unique()) for name in ("exact", "paraphrases"))
    panels = part.subplots(len(copies), len(paraphrases), sharex=True, sharey=True, squeeze=False)
    values = rows["log_density"]
    low = min(values.quantile(LOWEST), -np.log(rows["size"].iloc[0]))
    margin = 0.07 * (values.max() - low)
    panels[0, 0].set_ylim(low - 3 * margin, values.max() + margin)
    for line, exact in zip(panels, copies, strict=True):
        for axes, number in zip(line, paraphrases, strict=True):
            own = rows[(rows["exact"] == exact) & (rows["paraphrases"] == number)]
            draw_strips(axes, own, low - margin)
            axes.set_title(f"{condition(exact, number)}\n{separation(own)}")


def condition(exact: int, paraphrases: int) -> str:
    """A condition of the factorial, in words."""
    words = ["1 copy"] if exact else []
    if paraphrases:
        words.append(f"{paraphrases} paraphrase{'s' if paraphrases > 1 else ''}")
    return " + ".join(words) or "no leak"


def separation(rows: pd.DataFrame) -> str:
    """The area under the curve of leaked strings against others in runs of one condition."""
    areas = []
    for _, run in rows.groupby("seed"):
        leaked, never = (
            run.loc[run["strings"] == role, "log_density"].to_numpy() for role in (LEAKED, NEVER)
        )
        areas.append(auc(leaked, never))
    mean, lower, upper = student(areas)
    ends = "" if np.isnan(lower) else f" ({max(0, lower):.2f} to {min(1, upper):.2f})"
    return f"AUC {mean:.2f}{ends}"


def draw_strips(axes: Axes, rows: pd.DataFrame, low: float) -> None:
    """A strip of points with its median for each kind of strings; those below `low` are counted."""
    axes.axhline(-np.log(rows["size"].iloc[0]), **ONE_STRING, zorder=1.5)
    for place, (strings, look) in enumerate(looks.STRINGS.items()):
        values = rows.loc[rows["strings"] == strings, "log_density"].sort_values().to_numpy()
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
    axes.set_xticks(range(len(looks.STRINGS)), list(looks.STRINGS))
    axes.tick_params(axis="x", length=0)
    axes.grid(False, axis="x")


@style.styled
def leakage_performance(table: pd.DataFrame) -> Figure:
    """Accuracy and perplexity of every condition, from tables `leakage` of one language.

    Source: LMD3, figure 3 (bar charts).
    """
    rows = once(table)
    copies = sorted(rows["exact"].unique())
    figure = curves.figure_of(4.3, f"Performance on leaked strings: {curves.subject(table)}")
    grid = figure.subplots(len(OUTCOMES), len(copies), sharex=True, sharey="row", squeeze=False)
    for line, (column, label) in zip(grid, OUTCOMES.items(), strict=True):
        found = intervals_over_seeds(rows, ["strings", "exact", "paraphrases"], column).sort_index()
        if column == "answer_right":
            found = looks.of_shares(found)
            looks.share_axis(line[0], found[looks.ENDS])
        else:
            looks.perplexity_axis(line[0], found[looks.ENDS])
        for axes, exact in zip(line, copies, strict=True):
            draw_conditions(axes, found, exact)
        line[0].set_ylabel(label)
    for axes, exact in zip(grid[0], copies, strict=True):
        axes.set_title("with an exact copy" if exact else "without an exact copy", weight="bold")
    for axes in grid[-1]:
        axes.set_xlabel("paraphrases of each leaked string")
        axes.set_xticks(sorted(rows["paraphrases"].unique()))
    note = (
        f"{looks.seeds_note(table)} At the end of training; accuracy: share of right answers. "
        "All kinds of strings are in the same runs, and are random draws of one distribution."
    )
    curves.legend(figure, [look.handle(linestyle="-") for look in looks.STRINGS.values()], note)
    return figure


def draw_conditions(axes: Axes, means: pd.DataFrame, exact: int) -> None:
    """One line over the number of paraphrases for each kind of strings."""
    for (strings, look), shift in zip(looks.STRINGS.items(), (-0.08, 0, 0.08), strict=True):
        if (strings, exact) in {index[:2] for index in means.index}:
            own = means.loc[(strings, exact)]
            places = own.index.to_numpy() + shift
            looks.draw_means(axes, places, own, color=look.colour, marker=look.marker)
