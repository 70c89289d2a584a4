"""Estimates of density against the language's exact probabilities."""

from __future__ import annotations

from palimpsest.density import kinds
from palimpsest.density.figures import palette
from palimpsest.density.kinds import LENGTH, TOP_K, TRAINED, UNSEEN
from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt

FIGURE = Figure(
    __name__,
    order=70,
    chapter="truth",
    title="Estimates against exact probabilities",
    caption=(
        "The rank correlation of every estimate of density with a string's exact probability, "
        "for unseen strings (left half) and trained ones (right half), plain and at equal "
        "length. Right of 0 for unseen strings at equal length is density; the others see "
        "copies."
    ),
    tables=(kinds.TRUTH,),
)
STEP = 0.22
STUDY = ["model", "size", "variant"]
TITLES = {UNSEEN: "never trained on", TRAINED: "trained strings"}
COLUMNS = {"correlation": "\n", "given_length": ",\nat equal length"}


@style.styled
def density_truth(table: pd.DataFrame) -> plt.Figure:
    """The correlation of every estimate with the exact log probability.

    `table` holds tables `truth` of one language, of one or of several studies.
    """
    estimates = estimates_of(table)
    studies = list(table.groupby(STUDY, sort=False))
    height = len(studies) * (0.21 * len(estimates) + 0.55) + 1.2
    several = len(studies) > 1
    subject = f"language {table['language'].iloc[0]}" if several else elements.subject(table)
    figure = elements.figure_of(height, f"Density and exact probability: {subject}")
    inner = elements.panels_in(figure)
    grid = inner.subplots(len(studies), 4, sharey=True, sharex=True, squeeze=False)
    columns = [(strings, column) for strings in (UNSEEN, TRAINED) for column in COLUMNS]
    for line, ((model, size, variant), rows) in zip(grid, studies, strict=True):
        for axes, (strings, column) in zip(line, columns, strict=True):
            own = rows[rows["string_role"] == strings]
            draw_correlations(axes, own, column, estimates)
            axes.set_title(TITLES[strings] + COLUMNS[column])
        if several:
            line[0].set_ylabel(f"{model}, {size} strings\n({variant})")
    inner.supxlabel("rank correlation of the estimate and the exact log probability (−1 to 1)")
    note = (
        f"{elements.intervals_note(table)} Spearman's correlation; at equal length: partial. A "
        "trained string counts itself and its copies. Distances (mean of the k nearest) "
        f"and lengths count negatively: near and short are dense. {counted(table)}"
    )
    handles = [elements.look_handle(look) for look in palette.EMBEDDINGS.values()]
    elements.legend(figure, [*handles, *neither(table)], note)
    return figure


def counted(table: pd.DataFrame) -> str:
    found = []
    for strings, words in palette.TRAINED_OR_NOT.items():
        n = table.loc[table["string_role"] == strings, "n_strings"]
        if len(n):
            found.append(f"{elements.range_in_words(n)} {words}")
    return f"A seed has {' and '.join(found)}."


def neither(table: pd.DataFrame) -> list:
    """A legend entry for the length, which has no embedding."""
    if LENGTH not in set(table["estimator"]):
        return []
    return [elements.marker_handle("length alone: no embedding", style.INK, "s")]


def estimates_of(table: pd.DataFrame) -> dict[tuple[str, float], str]:
    """The names in words of the estimators with their settings, from narrow to wide."""
    found = table[["estimator", "bandwidth_or_k"]].drop_duplicates()
    order = [name for name in (*palette.KERNELS, TOP_K, LENGTH) if name in set(found["estimator"])]
    named = {}
    for estimator in order:
        for setting in sorted(
            found.loc[found["estimator"] == estimator, "bandwidth_or_k"].fillna(-1)
        ):
            named[estimator, setting] = in_words(estimator, setting)
    return named


def in_words(estimator: str, setting: float) -> str:
    if estimator == LENGTH:
        return "length"
    if estimator == TOP_K:
        return f"distance, k = {setting:.0f}"
    return f"{estimator} {setting:g}"


def draw_correlations(axes: plt.Axes, rows: pd.DataFrame, column: str, estimates: dict) -> None:
    axes.axvline(0, **elements.ZERO)
    elements.name_rows(axes, list(estimates.values()))
    rows = rows.assign(
        bandwidth_or_k=rows["bandwidth_or_k"].fillna(-1), embedding=rows["embedding"].fillna("")
    )
    keys = ["estimator", "bandwidth_or_k", "embedding"]
    found = intervals_over_seeds(rows, keys, column).sort_index()
    order = [*palette.EMBEDDINGS]
    known = {index[:2] for index in found.index}
    for place, (estimator, setting) in enumerate(estimates):
        own_rows = found.loc[(estimator, setting)] if (estimator, setting) in known else found[:0]
        for name, own in own_rows.iterrows():
            look = palette.EMBEDDINGS.get(name, style.Look("", style.INK, "s"))
            shift = STEP * (2 * order.index(name) - 1) if name in order else 0
            shape = {"color": look.colour, "marker": look.marker, "markersize": 3.5}
            elements.draw_interval(axes, place + shift, own[palette.ENDS], **shape)
        if estimator == LENGTH and column == "given_length":
            axes.text(0, place, "   not defined", fontsize=6, va="center", color="0.4")
    elements.correlation_axis(axes)
