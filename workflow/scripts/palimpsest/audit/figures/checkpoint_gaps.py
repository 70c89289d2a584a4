"""How far unlearned checkpoints are on the way from original to retrained models."""

from __future__ import annotations

import textwrap

from palimpsest.audit.checkpoints.clear_gaps import unclear_sets
from palimpsest.audit.checkpoints.kinds import FORGET, GAPS, HOLDOUT, RETAIN, ROLES
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt

FIGURE = Figure(
    __name__,
    order=30,
    chapter="checkpoints",
    title="The share of the gap that unlearning closed",
    caption=(
        "The rise of the loss of forget records from the original models, as a share of its "
        "rise to the retrained ones, beside that of other records. Unlearned models should be "
        "near 1 on forget records and near 0 on others; where all rise alike, the model is "
        "only damaged."
    ),
    tables=(GAPS,),
    drawn_for="records",
)
ROW = 0.3  # inches
LANES = {FORGET: -0.2, RETAIN: 0.05, HOLDOUT: 0.25}  # of a row
LOOKS = {
    FORGET: {"color": style.OTHER_COLOURS[1], "marker": "o", "markersize": 4},
    RETAIN: {"color": style.OTHER_COLOURS[2], "marker": "s", "markersize": 3},
    HOLDOUT: {"color": "0.5", "marker": "D", "markersize": 3},
}


@style.styled
def checkpoint_gaps(gaps: pd.DataFrame) -> plt.Figure:
    """From the tables of the sets on one corpus: a panel for each set, a row for each model."""
    known = gaps.dropna(subset="share")
    unclear = [
        f"Of the set {name}, the gap is not clear: {why}."
        for (_, name), why in unclear_sets(gaps).items()
    ]
    if known.empty:
        return without_a_gap(unclear)
    sets = dict(list(known.groupby("model", sort=False)))
    rows = {name: rows_of(found) for name, found in sets.items()}
    heights = [ROW * len(names) + 0.4 for names in rows.values()]
    title = f"The share of the gap that unlearning closed: {known['language'].iloc[0]}"
    figure = elements.figure_of(1.3 + sum(heights), title)
    panels = elements.panels_in(figure)
    grid = panels.subplots(len(sets), 1, sharex=True, squeeze=False, height_ratios=heights)
    for axes, (name, found) in zip(grid.flat, sets.items(), strict=True):
        draw_set(axes, found, rows[name])
        axes.set_title(name, loc="left")
    panels.supxlabel("share of the gap, from the original models (0) to the retrained ones (1)")
    handles = [
        elements.marker_handle(f"{split} records", look["color"], look["marker"])
        for split, look in LOOKS.items()
        if split in {*known["split"]}
    ]
    elements.legend(
        figure,
        [*handles, elements.line_handle("the two ends", **style.TEST_LINE)],
        " ".join([note_of(known), *unclear]),
    )
    return figure


def without_a_gap(unclear: list[str]) -> plt.Figure:
    """In place of panels: the losses of each set, and why they may show no gap."""
    lines = [textwrap.fill(said, style.CHARACTERS_PER_LINE) for said in unclear]
    said = "\n".join(lines)
    height = 0.5 + 0.13 * len(said.splitlines())
    figure = elements.figure_of(height, "No set of checkpoints has a clear gap")
    figure.text(0.01, 1 - 0.35 / height, said, va="top", fontsize="small")
    return figure


def rows_of(found: pd.DataFrame) -> list[tuple[str, str]]:
    """Role and name of each model, the original models first."""
    models = found[["role", "checkpoint"]].drop_duplicates().itertuples(index=False)
    return sorted(map(tuple, models), key=lambda model: ROLES.index(model[0]))


def draw_set(axes: plt.Axes, found: pd.DataFrame, rows: list[tuple[str, str]]) -> None:
    for end in (0, 1):
        axes.axvline(end, **style.TEST_LINE)
    for row in found.itertuples():
        if row.split in LOOKS:
            place = rows.index((row.role, row.checkpoint)) + LANES[row.split]
            interval = (row.share, row.lower, row.upper)
            elements.draw_interval(axes, place, interval, **LOOKS[row.split])
    elements.name_rows(axes, [f"{name} ({role})" for role, name in rows])


def note_of(known: pd.DataFrame) -> str:
    n = known.loc[known["split"] == FORGET, "n_records"].max()
    return (
        f"Bars: {elements.PERCENT} intervals over groups of records, and over original and "
        f"retrained models where there are several; {elements.counted(int(n), 'forget record')}. A "
        "retrained model is compared with the others, and a single one has no share of its own gap."
    )
