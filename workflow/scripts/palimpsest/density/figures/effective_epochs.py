"""Performance against what is known of a leak, and against density, which is measured."""

from __future__ import annotations

from palimpsest.density import kinds
from palimpsest.density.bins import EXACT
from palimpsest.density.figures import palette
from palimpsest.density.kinds import ACCURACY, LEAKED, NEVER, PERPLEXITY
from palimpsest.density.paper import PAPER
from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt, ticker
from palimpsest.lazy_import import lazy_import

leakage_tables = lazy_import("palimpsest.density.leakage_tables")

FIGURE = Figure(
    __name__,
    order=30,
    chapter="leakage",
    title="Effective epochs and density",
    caption=(
        "Accuracy and perplexity of leaked strings by the number of times that a copy or "
        "paraphrase was trained on (left), and of all test strings by density (right). See "
        "whether a paraphrase helps as much as a copy at equal effective epochs."
    ),
    numbers="2",
    paper=PAPER,
    tables=(kinds.LEAKAGE, kinds.DENSITY_BINS),
    some_empty=(kinds.DENSITY_BINS,),
)
LEAKS = {"color": palette.STRINGS[LEAKED].colour}
COPIES = {
    0: {**LEAKS, "marker": "o", "linestyle": "--", "markerfacecolor": "white"},
    1: {**LEAKS, "marker": "s", "linestyle": "-"},
}
LABELS = {0: "leaked: paraphrases only", 1: "leaked: a copy and paraphrases"}
LINE = {"color": palette.STRINGS[NEVER].colour, "linewidth": 0.9, "linestyle": ":"}
BAND = {"color": palette.STRINGS[NEVER].colour, "alpha": 0.13, "linewidth": 0}
OUTCOMES = {
    "answer_right": (ACCURACY, palette.ACCURACY_LABEL, palette.share_axis),
    "perplexity": (PERPLEXITY, palette.PERPLEXITY_LABEL, palette.perplexity_axis),
}
APART = 0.06  # of the effective epochs of a copy: between lines


@style.styled
def effective_epochs(leakage: pd.DataFrame, bins: pd.DataFrame) -> plt.Figure:
    """Accuracy and perplexity against effective epochs, and against density in bins.

    The tables are `leakage` and `density_bins` of one language.

    Source: LMD3, figure 2.
    """
    bins = bins[bins["part"] == EXACT].rename(columns={"mean_y": "mean"})
    embeddings = list(bins["embedding"].unique())
    figure = elements.figure_of(4.6, "Effective epochs and density", leakage)
    outcomes = palette.outcomes_of(leakage, OUTCOMES)
    grid = figure.subplots(
        len(outcomes), 1 + len(embeddings), sharex="col", sharey="row", squeeze=False
    )
    for line, (column, (outcome, label, scale)) in zip(grid, outcomes.items(), strict=True):
        of_outcome = bins[bins["outcome"] == outcome]
        never, leaked = performance(leakage, column)
        draw_epochs(line[0], never, leaked)
        for axes, embedding in zip(line[1:], embeddings, strict=True):
            own = of_outcome[of_outcome["embedding"] == embedding].sort_values("bin")
            look = palette.of_embedding(embedding)
            elements.draw_means(axes, own["mean_x"], own, color=look.colour, marker=look.marker)
            axes.xaxis.set_major_locator(ticker.MaxNLocator(5, steps=[1, 2, 3, 5, 10]))
        if outcome == ACCURACY:
            for axes in line:
                palette.draw_chance(axes, leakage)
        scale(line[0], pd.concat([frame[palette.ENDS] for frame in (never, leaked, of_outcome)]))
        line[0].set_ylabel(label)
    name_axes(grid, embeddings)
    elements.legend(figure, handles(embeddings), note(leakage, bins))
    return figure


def performance(leakage: pd.DataFrame, column: str) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Means with intervals: of strings never leaked; of leaked strings by effective epochs."""
    rows = leakage_tables.once(leakage)
    never, leaked = (rows[rows["string_role"] == strings] for strings in (NEVER, LEAKED))
    found = (
        intervals_over_seeds(never, ["string_role"], column),
        intervals_over_seeds(leaked, ["n_copies", "effective_epochs"], column).sort_index(),
    )
    return tuple(map(palette.of_shares, found)) if column == "answer_right" else found


def draw_epochs(axes: plt.Axes, never: pd.DataFrame, leaked: pd.DataFrame) -> None:
    for _, own in never.iterrows():
        axes.axhline(own["mean"], **LINE)
        if np.isfinite(own["lower"]):
            axes.axhspan(own["lower"], own["upper"], **BAND)
    epochs = sorted(leaked.index.unique("effective_epochs"))
    step = APART * (epochs[1] - epochs[0]) if epochs[1:] else 0
    for (n_copies, look), shift in zip(COPIES.items(), (-step, step), strict=True):
        if n_copies in leaked.index.unique("n_copies"):
            own = leaked.loc[n_copies]
            elements.draw_means(axes, own.index.to_numpy() + shift, own, **look)
    axes.set_xticks(epochs)


def name_axes(grid: np.ndarray, embeddings: list[str]) -> None:
    grid[0, 0].set_title("what is known:\ntraining on the string")
    for axes, embedding in zip(grid[0, 1:], embeddings, strict=True):
        axes.set_title(f"what is measured: density,\n{palette.of_embedding(embedding).label}")
    grid[-1, 0].set_xlabel("effective epochs: epochs ×\n(copies + paraphrases)")
    for axes in grid[-1, 1:]:
        axes.set_xlabel("log density\n(natural logarithm)")


def handles(embeddings: list[str]) -> list:
    found = [palette.of_embedding(name) for name in embeddings]
    return [
        *(
            elements.line_handle(LABELS[n_copies], markersize=4.5, **look)
            for n_copies, look in COPIES.items()
        ),
        elements.line_handle("never leaked: all runs", **LINE),
        *(
            elements.look_handle(look, f"all test strings: {look.label}", linestyle="-")
            for look in found
        ),
    ]


def note(leakage: pd.DataFrame, bins: pd.DataFrame) -> str:
    of_points = (
        f"{elements.intervals_note(leakage)} Accuracy: share of right answers "
        f"({palette.CHANCE_NOTE})."
    )
    if bins.empty:
        return f"{of_points} There are too few test strings for bins of density."
    first = bins.iloc[0]
    return (
        f"{of_points} Right: "
        f"{palette.setting(bins)}; bins of equally many test "
        f"strings of all runs, leaked or not, with {first['shortest']} to {first['longest']} "
        f"symbols (the central half of the lengths); bars: {elements.PERCENT} intervals over the "
        "strings of a bin."
    )
