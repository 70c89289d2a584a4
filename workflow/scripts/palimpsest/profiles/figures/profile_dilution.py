"""Dilution and order: the cells of the factorial, and its contrasts."""

from __future__ import annotations

from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt, ticker
from palimpsest.lazy_import import lazy_import
from palimpsest.profiles import kinds
from palimpsest.profiles.factorial import EARLY, LATE
from palimpsest.profiles.figures import palette
from palimpsest.profiles.kinds import DIFFERENCE, LOG_LIKELIHOOD, PLACEBO, SPECIFIC, TRAINED

dilution_effects = lazy_import("palimpsest.profiles.dilution_effects")

FIGURE = Figure(
    __name__,
    order=90,
    chapter="dilution",
    title="Dilution and order",
    caption=(
        "The specific effect of training by copies, position and size of the stream (left), "
        "and its contrasts, also from one run alone and for unseen strings (right). See "
        "whether lines fall to the right, late strings are above early ones, and placebos are "
        "at 0."
    ),
    tables=(kinds.DILUTION, kinds.DILUTION_EFFECTS),
)
# The line of each position, and how its markers are filled
LINES = {EARLY: {"linestyle": "--", "markerfacecolor": "white"}, LATE: {"linestyle": "-"}}
# Rows of a contrast, from the top: kind of strings, effect, name, colour and marker
ROWS = (
    (TRAINED, SPECIFIC, "retraining", palette.MODELS, "o"),
    (TRAINED, DIFFERENCE, "one run (difference)", palette.ESTIMATORS[DIFFERENCE].colour, "s"),
    (PLACEBO, SPECIFIC, "placebo, by retraining", "0.55", "D"),
)
STEP = 0.22  # between the rows of a contrast


@style.styled
def profile_dilution(table: pd.DataFrame, effects: pd.DataFrame) -> plt.Figure:
    """The cells and the contrasts, from tables `dilution` and `dilution_effects` of one language.

    The tables hold one model.
    """
    cells = dilution_effects.at_the_end(table)
    cells = cells[cells["outcome"] == LOG_LIKELIHOOD]
    model, language, seeds = (table[name].unique() for name in ("model", "language", "seed"))
    title = f"Dilution and order: language {language[0]}, {model[0]}"
    figure = elements.figure_of(3.9, title)
    left, right = figure.subplots(1, 2, width_ratios=[1, 1.05])
    draw_cells(left, cells)
    draw_contrasts(right, effects[effects["outcome"] == LOG_LIKELIHOOD])
    handles = [
        *cell_handles(cells),
        *(
            elements.line_handle(f"right: {name}", colour, marker=marker, markersize=4)
            for _, _, name, colour, marker in ROWS
        ),
    ]
    n_strings = cells.loc[cells["string_role"] == TRAINED, "n_strings"].min()
    note = (
        f"Means over {elements.counted(len(seeds), 'seed')}; bars: 95 % intervals over "
        f"the seeds; {elements.counted(n_strings, 'string')} for each cell and seed. "
        "Early and late: the first and the last quarter of the stream, which also differ in the "
        "learning rate."
    )
    elements.legend(figure, handles, note)
    return figure


def draw_cells(axes: plt.Axes, cells: pd.DataFrame) -> None:
    """The specific effect by the size of the stream: a line for each arm, placebos in grey."""
    axes.axhline(0, **elements.ZERO)
    sizes = sorted(cells["size"].unique())
    placebos = cells[cells["string_role"] == PLACEBO]
    draw_line(axes, placebos, 1.0, color=ROWS[-1][3], marker=ROWS[-1][4], linestyle=":")
    trained = cells[cells["string_role"] == TRAINED]
    tints = of_copies(cells)
    # Shifted sideways, so that intervals do not hide each other
    shifts = np.linspace(0.91, 1.09, 2 * len(tints)).tolist()
    for (copies, position), own in trained.groupby(["copies", "position"]):
        look = {"color": tints[copies], "marker": "o", **LINES[position]}
        draw_line(axes, own, shifts.pop(0), **look)
    axes.set_xscale("log")
    axes.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axes.xaxis.set_minor_formatter(ticker.NullFormatter())
    axes.tick_params(axis="x", which="minor", length=0)
    axes.set_xlim(sizes[0] / 1.3, sizes[-1] * 1.3)
    axes.set(xlabel="size of the stream (training strings)", ylabel="specific effect (nats)")
    axes.set_title("memorisation of the strings of each arm")


def draw_line(axes: plt.Axes, cells: pd.DataFrame, shift: float, **look) -> None:
    found = intervals_over_seeds(cells, ["size"], SPECIFIC).sort_index()
    ends = elements.reach(found["mean"], found["lower"], found["upper"])
    axes.errorbar(found.index * shift, found["mean"], ends, markersize=4.5, elinewidth=0.9, **look)


def of_copies(cells: pd.DataFrame) -> dict[int, tuple[float, float, float]]:
    return palette.tints(sorted(cells["copies"].unique()))


def cell_handles(cells: pd.DataFrame) -> list:
    arms = [
        elements.line_handle(
            f"left: {copies} cop{'ies' if copies > 1 else 'y'}, {position}",
            colour,
            marker="o",
            markersize=4,
            **look,
        )
        for copies, colour in of_copies(cells).items()
        for position, look in LINES.items()
    ]
    grey = {"color": ROWS[-1][3], "marker": ROWS[-1][4], "markersize": 4, "linestyle": ":"}
    return [*arms, elements.line_handle("left: placebos of all arms", **grey)]


def draw_contrasts(axes: plt.Axes, effects: pd.DataFrame) -> None:
    """Every contrast with its interval: by retraining, from one run, and of placebos."""
    contrasts = list(effects["contrast"].unique())
    axes.axvline(0, **elements.ZERO)
    for place, (strings, effect, _, colour, marker) in enumerate(ROWS):
        rows = effects[(effects["string_role"] == strings) & (effects["effect"] == effect)]
        rows = rows.set_index("contrast").loc[contrasts]
        mean = rows["estimate"]
        ends = elements.reach(mean, rows["lower"], rows["upper"])
        y = np.arange(len(contrasts)) + (place - 1) * STEP
        look = {"color": colour, "marker": marker, "linestyle": "none"}
        axes.errorbar(mean, y, xerr=ends, markersize=4, elinewidth=0.9, **look)
    names = [palette.CONTRASTS.get(name, name.replace(" x ", " × ")) for name in contrasts]
    axes.set_yticks(range(len(contrasts)), names)
    axes.invert_yaxis()
    axes.set_xlabel("contrast of the effect (nats)")
    axes.set_title("what the factors change")
