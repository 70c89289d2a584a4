"""The figure of the study `exposure`: verdicts on fields, and how far values are exposed."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.memorisation.studies.exposure import KIND

FIGURE = Figure(
    __name__,
    order=151,
    chapter="exposure",
    title="Which fields of single strings are memorised",
    caption=(
        "Top: verdicts on fields of single strings, trained on and never trained on, where "
        "“memorised” is a false alarm. Bottom: the share of strings whose value has at least "
        "so many bits of exposure, and the share by chance."
    ),
    tables=(KIND,),
)
VERDICTS = {
    "memorised": style.MEASURES["bayes"].colour,
    "known": style.MEASURES["counterfactual"].colour,
    "neither": "0.75",
    "cannot tell": "0.92",
}
GROUPS = {"train": "train", "unseen": "test"}  # the lines of groups of strings
NAMES = {"train": "trained on", "unseen": "unseen"}
ROW = 0.17  # inches, of a bar
COLUMNS = 4


@style.styled
def exposure(study: pd.DataFrame) -> plt.Figure:
    """A bar of verdicts for each field and group, and a panel for each field that was ranked."""
    names = ordered(study)
    ranked = study.dropna(subset="bits")
    fields = [name for name in names if name in set(ranked["field"])]
    height = 0.6 + ROW * 2 * len(names)
    rows = -(-len(fields) // COLUMNS)
    title = "Which fields of single strings are memorised"
    figure = elements.figure_of(1.2 + height + 1.7 * rows, title, study)
    parts = elements.panels_in(figure)
    if not fields:
        draw_verdicts(parts.subplots(), study)
    else:
        top, bottom = parts.subfigures(2, 1, height_ratios=[height, 1.7 * rows])
        draw_verdicts(top.subplots(), study)
        panels = elements.grid_of(bottom, len(fields), COLUMNS, sharey=True)
        for axes, field in zip(panels, fields, strict=True):
            draw_exposures(axes, ranked[ranked["field"] == field])
            axes.set_title(field, weight="bold")
        bottom.supxlabel("exposure (bits)")
        bottom.supylabel("share of strings")
    colour = VERDICTS["memorised"]
    handles = [
        *(elements.bar_handle(name, colour) for name, colour in VERDICTS.items()),
        *(
            elements.line_handle(NAMES[group], colour, linestyle=style.LINES[line])
            for group, line in GROUPS.items()
        ),
        elements.line_handle("chance", **style.BAYES_LINE),
    ]
    note = f"All runs together: {elements.counted(study['seed'].nunique(), 'seed')}."
    elements.legend(figure, handles, note, columns=4)
    return figure


def ordered(study: pd.DataFrame) -> list[str]:
    """The fields, the hardest one to guess first."""
    hardest = study.groupby("field")["optimal"].max()
    return list(hardest.sort_values(ascending=False).index)


def draw_verdicts(axes: plt.Axes, study: pd.DataFrame) -> None:
    """A bar for each field, open or determined, and group of strings."""
    bars = []
    for determined in (False, True):
        for field in ordered(study):
            chosen = (study["field"] == field) & (study["determined"] == determined)
            for group, rows in study[chosen].groupby("group"):
                state = "determined" if determined else "open"
                bars.append((f"{field}, {state}: {NAMES[group]}", rows))
    places = np.arange(len(bars)) + 0.4 * (np.arange(len(bars)) // 2)
    so_far = np.zeros(len(bars))
    for verdict, colour in VERDICTS.items():
        shares = np.array([(rows["verdict"] == verdict).mean() for _, rows in bars])
        axes.barh(places, shares, 0.85, so_far, color=colour, edgecolor="0.6", linewidth=0.3)
        so_far += shares
    axes.set_yticks(places, [name for name, _ in bars])
    axes.invert_yaxis()
    axes.grid(visible=False, axis="y")
    axes.set(xlim=(0, 1), xlabel="share of fields")


def draw_exposures(axes: plt.Axes, ranked: pd.DataFrame) -> None:
    """The share of strings with at least so many bits, for each group, beside that of chance."""
    most = ranked["bits"].max()
    bits = np.linspace(0, most, 50)
    axes.plot(bits, 2.0**-bits, **style.BAYES_LINE)
    for group, rows in ranked.groupby("group"):
        found = np.sort(rows["bits"])
        shares = 1 - np.arange(len(found)) / len(found)
        axes.step(
            [0, *found],
            [1, *shares],
            where="pre",
            color=VERDICTS["memorised"],
            linestyle=style.LINES[GROUPS[group]],
        )
    axes.set_yscale("log")
    axes.set(xlim=(0, most * 1.04 or 1), ylim=(2.0**-8, 1.15))
    elements.plain_numbers(axes.yaxis)
