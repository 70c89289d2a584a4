"""The share of records called memorised, beside the same share of records never trained on."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.records.kinds import SHARES

FIGURE = Figure(
    __name__,
    order=10,
    chapter="records",
    title="Records called memorised",
    caption=(
        "Left: the share of records that a measure calls memorised, of those trained on "
        "(filled) and never trained on (open), mean over seeds. Right: their difference, for "
        "each seed with its 95 % interval; only what is beyond 0 is evidence."
    ),
    tables=(SHARES,),
    drawn_for="records",
)
TRAINED = {"marker": "o", "markersize": 5}
UNSEEN = {"marker": "o", "markersize": 8, "markerfacecolor": "white"}  # a ring where both are equal
APART = 0.35  # of a row, over which its seeds are spread


@style.styled
def record_shares(table: pd.DataFrame) -> plt.Figure:
    """From a table `record_shares` of one corpus or table of losses."""
    rows = list(table.groupby(["model", "measure"], sort=False))
    name = table["language"].iloc[0]
    figure = elements.figure_of(1.1 + 0.3 * len(rows), f"Records called memorised: {name}")
    left, right = figure.subplots(1, 2, sharey=True)
    several = table["model"].nunique() > 1
    elements.name_rows(
        left, [f"{measure}, {model}" if several else measure for (model, measure), _ in rows]
    )
    right.axvline(0, **elements.ZERO)
    for place, ((_, measure), found) in enumerate(rows):
        colour = style.MEASURES[measure].colour if measure in style.MEASURES else style.INK
        shares = found[["share_trained", "share_unseen"]].mean()
        left.plot(shares, [place, place], color=colour, linewidth=0.8)
        left.plot(shares["share_unseen"], place, color=colour, **UNSEEN)
        left.plot(shares["share_trained"], place, color=colour, **TRAINED)
        _draw_differences(right, place, found, colour)
    left.set(xlabel="share called memorised", xlim=(-0.03, 1.03))
    right.set(xlabel="difference of the shares")
    elements.legend(
        figure,
        [
            elements.line_handle("trained on", linestyle="none", **TRAINED),
            elements.line_handle("never trained on", linestyle="none", **UNSEEN),
        ],
        "Intervals: 95 %, over groups of records.",
    )
    return figure


def _draw_differences(axes: plt.Axes, place: int, found: pd.DataFrame, colour) -> None:
    known = found.dropna(subset="difference")
    offsets = np.linspace(-APART / 2, APART / 2, len(known)) if len(known) > 1 else [0.0]
    for offset, row in zip(offsets, known.itertuples(), strict=False):
        axes.plot([row.lower, row.upper], [place + offset] * 2, color=colour, linewidth=0.9)
        axes.plot(row.difference, place + offset, "o", color=colour, markersize=3)
