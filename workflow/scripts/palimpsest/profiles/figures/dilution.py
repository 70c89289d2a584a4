"""Dilution and order: the cells of the factorial, and its contrasts."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import NullFormatter

from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import curves, style
from palimpsest.profiles.dilution_effects import at_the_end
from palimpsest.profiles.factorial import EARLY, LATE
from palimpsest.profiles.figures import looks
from palimpsest.profiles.kinds import DIFFERENCE, LOG_LIKELIHOOD, PLACEBO, SPECIFIC, TRAINED

# Of a position: the line, and how its markers are filled
LINES = {EARLY: {"linestyle": "--", "markerfacecolor": "white"}, LATE: {"linestyle": "-"}}
# What is drawn of a contrast, from the top: kind of strings, effect, name, colour and marker
ROWS = (
    (TRAINED, SPECIFIC, "retraining", looks.MODELS, "o"),
    (TRAINED, DIFFERENCE, "one run (difference)", looks.ESTIMATORS[DIFFERENCE].colour, "s"),
    (PLACEBO, SPECIFIC, "placebo, by retraining", "0.55", "D"),
)
STEP = 0.22  # between the rows of a contrast


@style.styled
def dilution(table: pd.DataFrame, effects: pd.DataFrame) -> Figure:
    """The cells and the contrasts, from tables `dilution` and `dilution_effects` of one language.

    The tables hold one model.
    """
    cells = at_the_end(table)
    cells = cells[cells["outcome"] == LOG_LIKELIHOOD]
    model, language, seeds = (table[name].unique() for name in ("model", "language", "seed"))
    title = f"Dilution and order: language {language[0]}, {model[0]}"
    figure = curves.figure_of(3.9, title)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.05])
    draw_cells(left, cells)
    draw_contrasts(right, effects[effects["outcome"] == LOG_LIKELIHOOD])
    handles = [
        *cell_handles(cells),
        *(
            Line2D([], [], color=colour, marker=marker, markersize=4, label=f"right: {name}")
            for _, _, name, colour, marker in ROWS
        ),
    ]
    n_strings = cells.loc[cells["strings"] == TRAINED, "n_strings"].min()
    note = (
        f"Means over {len(seeds)} seed{'s' if len(seeds) > 1 else ''}; bars: 95 % intervals over "
        f"the seeds; {n_strings} string{'s' if n_strings > 1 else ''} for each cell and seed. "
        "Early and late: the first and the last quarter of the stream, which also differ in the "
        "learning rate."
    )
    curves.legend(figure, handles, note)
    return figure


def draw_cells(axes: Axes, cells: pd.DataFrame) -> None:
    """The specific effect against the size of the stream, a line for each arm; placebos in grey."""
    axes.axhline(0, **looks.ZERO)
    sizes = sorted(cells["size"].unique())
    placebos = cells[cells["strings"] == PLACEBO]
    draw_line(axes, placebos, 1.0, color=ROWS[-1][3], marker=ROWS[-1][4], linestyle=":")
    trained = cells[cells["strings"] == TRAINED]
    tints = colours(cells)
    # Side by side, so that intervals do not hide each other
    shifts = np.linspace(0.91, 1.09, 2 * len(tints)).tolist()
    for (copies, position), own in trained.groupby(["copies", "position"]):
        look = {"color": tints[copies], "marker": "o", **LINES[position]}
        draw_line(axes, own, shifts.pop(0), **look)
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.tick_params(axis="x", which="minor", length=0)
    axes.set_xlim(sizes[0] / 1.3, sizes[-1] * 1.3)
    axes.set(xlabel="size of the stream (training strings)", ylabel="specific effect (nats)")
    axes.set_title("memorisation of the strings of each arm")


def draw_line(axes: Axes, cells: pd.DataFrame, shift: float, **look) -> None:
    """Means over the seeds with intervals, against the size."""
    found = intervals_over_seeds(cells, ["size"], SPECIFIC).sort_index()
    reach = np.nan_to_num([found["mean"] - found["lower"], found["upper"] - found["mean"]])
    axes.errorbar(found.index * shift, found["mean"], reach, markersize=4.5, elinewidth=0.9, **look)


def colours(cells: pd.DataFrame) -> dict[int, tuple[float, float, float]]:
    """The colour of each number of copies, from light to dark."""
    copies = sorted(cells["copies"].unique())
    return {n: style.tinted(looks.MODELS, (i + 1) / len(copies)) for i, n in enumerate(copies)}


def cell_handles(cells: pd.DataFrame) -> list[Line2D]:
    """A legend entry for each arm, and for placebos."""
    arms = [
        Line2D(
            [],
            [],
            color=colour,
            marker="o",
            markersize=4,
            label=f"left: {copies} cop{'ies' if copies > 1 else 'y'}, {position}",
            **look,
        )
        for copies, colour in colours(cells).items()
        for position, look in LINES.items()
    ]
    grey = {"color": ROWS[-1][3], "marker": ROWS[-1][4], "markersize": 4, "linestyle": ":"}
    return [*arms, Line2D([], [], label="left: placebos of all arms", **grey)]


def draw_contrasts(axes: Axes, effects: pd.DataFrame) -> None:
    """Every contrast with its interval: by retraining, from one run, and of placebos."""
    contrasts = list(effects["contrast"].unique())
    axes.axvline(0, **looks.ZERO)
    for place, (strings, effect, _, colour, marker) in enumerate(ROWS):
        rows = effects[(effects["strings"] == strings) & (effects["effect"] == effect)]
        rows = rows.set_index("contrast").loc[contrasts]
        mean = rows["estimate"]
        reach = np.nan_to_num([mean - rows["lower"], rows["upper"] - mean])
        y = np.arange(len(contrasts)) + (place - 1) * STEP
        look = {"color": colour, "marker": marker, "linestyle": "none"}
        axes.errorbar(mean, y, xerr=reach, markersize=4, elinewidth=0.9, **look)
    names = [looks.CONTRASTS.get(name, name.replace(" x ", " × ")) for name in contrasts]
    axes.set_yticks(range(len(contrasts)), names)
    axes.invert_yaxis()
    axes.set_xlabel("contrast of the effect (nats)")
    axes.set_title("what the factors change")
