"""The density of a text's corpus at queries, and how well a language model predicts them."""

from __future__ import annotations

from palimpsest.density import kinds
from palimpsest.density.bins import DISTANCE, EXACT, LOCAL, RANDOM, text_bins
from palimpsest.density.figures import palette
from palimpsest.density.paper import PAPER
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt, ticker
from palimpsest.lazy_import import lazy_import

kernel_module = lazy_import("palimpsest.density.kernel")

FIGURE = Figure(
    __name__,
    order=90,
    chapter="own_texts",
    title="Density and perplexity of a text",
    caption=(
        "The perplexity of queries, and of responses to them, by the density of the corpus "
        "and by the distance to the nearest segments, in bins of equally many queries; "
        "without a model, how these are distributed. See whether perplexity falls where the "
        "corpus is dense."
    ),
    numbers="4, 5, 12 and 13",
    paper=PAPER,
    tables=(kinds.TEXT_DENSITY,),
    drawn_for="text",
)
WIDE = 0.5  # the bandwidth of the paper's figures of texts
LOG_OF = "log density\n(natural logarithm)"
TITLES = {
    EXACT: "the whole corpus",
    LOCAL: "the nearest segments",
    RANDOM: "a random sample of the others",
    DISTANCE: "distance to the nearest",
}
LABELS = {
    kinds.PERPLEXITY: "perplexity per token",
    kinds.RESPONSE: "perplexity per token\nof the response",
}
HEIGHT_OF_ROW = 2.2  # inches, of each row of panels but the first
MEAN = {"color": "0.35", "linewidth": 0.9, "linestyle": (0, (4, 1.5))}
QUANTILES = [0.05, 0.25, 0.5, 0.75, 0.95]
BINS = 25


@style.styled
def text_density(density: pd.DataFrame) -> plt.Figure:
    """Perplexity in bins of density; distributions of density for a text without perplexities.

    `density` is a table `text_density` of one text. The bins are those of its table `text_bins`,
    which has no rows without perplexities, or with too few queries for a bin.

    Source: LMD3, figures 4, 5, 12 and 13.
    """
    bins = text_bins(of_setting(density))
    return distributions(density) if bins.empty else perplexities(bins, density)


def perplexities(rows: pd.DataFrame, density: pd.DataFrame) -> plt.Figure:
    """A row of panels for each set of queries, and one for the responses to them."""
    parts = [name for name in TITLES if name in set(rows["part"])]
    if LOCAL in parts:
        parts.remove(EXACT)
    shown = list(rows.groupby(["query_set", "outcome"], sort=False))
    height = 3.2 + HEIGHT_OF_ROW * (len(shown) - 1)
    figure = elements.figure_of(height, f"Density and perplexity: {subject(density)}")
    grid = figure.subplots(len(shown), len(parts), sharey="row", squeeze=False)
    is_alone = rows["query_set"].nunique() == 1
    for place, (panels, ((name, outcome), own)) in enumerate(zip(grid, shown, strict=True)):
        for axes, part in zip(panels, parts, strict=True):
            if part in set(own["part"]):
                draw_part(axes, own[own["part"] == part])
            name_part(axes, part, density)
            if place:
                axes.set_title("")
        of_set = "" if is_alone else f"{name}:\n"
        panels[0].set_ylabel(f"{of_set}{LABELS[outcome]}")
        panels[0].set_ylim(0, None)
    look = palette.of_embedding(rows["embedding"].iloc[0])
    lengths = ", ".join(
        f"{'' if is_alone else f'{name} '}{own['shortest'].min()} to {own['longest'].max()}"
        for name, own in rows.groupby("query_set", sort=False)
    )
    note = (
        f"Points: bins of equally many queries with {lengths} characters (the central half of the "
        f"lengths); bars: {elements.PERCENT} intervals over the queries of a bin. Embedding: "
        f"{name_of(rows['embedding'].iloc[0])}; {palette.setting(rows)}."
    )
    handles = [
        elements.look_handle(look, "mean perplexity of a bin", linestyle="-"),
        elements.line_handle("mean of all these queries", **MEAN),
    ]
    elements.legend(figure, handles, note)
    return figure


def of_setting(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the paper's setting, or of the nearest bandwidth to the paper's."""
    rows = rows[rows["embedding"] == rows["embedding"].iloc[0]]
    rows = rows[rows["kernel"] == kernel_module.preferred_kernel(set(rows["kernel"]))]
    bandwidths = rows["bandwidth"].unique()
    return rows[rows["bandwidth"] == bandwidths[np.abs(np.log(bandwidths / WIDE)).argmin()]]


def subject(density: pd.DataFrame) -> str:
    return f"text {density['language'].iloc[0]}, {density['segment_id'].nunique():,} queries"


def name_of(embedding: str) -> str:
    return palette.EMBEDDINGS[embedding].label if embedding in palette.EMBEDDINGS else embedding


def draw_part(axes: plt.Axes, rows: pd.DataFrame) -> None:
    look = palette.of_embedding(rows["embedding"].iloc[0])
    rows = rows.sort_values("bin").rename(columns={"mean_y": "mean"})
    axes.axhline(np.average(rows["mean"], weights=rows["n_strings"]), **MEAN)
    elements.draw_means(axes, rows["mean_x"], rows, color=look.colour, marker=look.marker)


def name_part(axes: plt.Axes, part: str, density: pd.DataFrame) -> None:
    """The axis of distances is reversed, so that dense is right in all panels."""
    axes.set(title=TITLES[part], xlabel=LOG_OF)
    axes.xaxis.set_major_locator(ticker.MaxNLocator(5))
    if part == DISTANCE:
        k = density["k"].iloc[0]
        axes.set_xlabel(f"mean distance to the {k} nearest\n(reversed: right is near)")
        axes.invert_xaxis()


def distributions(density: pd.DataFrame) -> plt.Figure:
    density = density[density["embedding"] == density["embedding"].iloc[0]]
    if density["log_density"].isna().all():  # only algorithm 1 was asked for
        density = density.assign(log_density=density["log_approximate"])
    embedding = density["embedding"].iloc[0]
    colour = palette.of_embedding(embedding).colour
    kernels = [kernel for kernel in palette.KERNELS if kernel in set(density["kernel"])]
    figure = elements.figure_of(3.0, f"Density of the corpus at queries: {subject(density)}")
    panels = figure.subplots(1, len(kernels) + 1, squeeze=False)[0]
    for axes, kernel in zip(panels, kernels, strict=False):
        draw_bandwidths(axes, density[density["kernel"] == kernel], colour)
        axes.set(title=f"{kernel} kernel", xlabel=LOG_OF)
    panels[0].set_ylabel("bandwidth")
    once = density.drop_duplicates("segment_id")
    panels[-1].hist(once["mean_distance"], BINS, color=colour, histtype="stepfilled")
    panels[-1].set_ylabel("number of queries")
    name_part(panels[-1], DISTANCE, density)
    note = (
        f"Embedding: {name_of(embedding)}. This text has no language model, so its queries have no "
        "perplexities; `model` of the text names one."
    )
    handles = [
        elements.line_handle("median", colour, marker="|", markersize=9, linestyle="none"),
        elements.bar_handle("middle half of the queries", style.tinted(colour, 0.45)),
        elements.line_handle("middle 90 %", colour, linewidth=0.9),
    ]
    elements.legend(figure, handles, note)
    return figure


def draw_bandwidths(axes: plt.Axes, rows: pd.DataFrame, colour: str) -> None:
    found = rows.groupby("bandwidth")["log_density"].quantile(QUANTILES).unstack()
    for place, (lowest, low, median, high, highest) in enumerate(found.to_numpy()):
        axes.plot([lowest, highest], [place, place], color=colour, linewidth=0.9)
        box = {"color": style.tinted(colour, 0.45), "zorder": 2}
        axes.barh(place, high - low, 0.5, left=low, **box)
        axes.plot([median], [place], "|", color=colour, markersize=11, markeredgewidth=1.8)
    elements.name_rows(axes, [f"{bandwidth:g}" for bandwidth in found.index])
    axes.xaxis.set_major_locator(ticker.MaxNLocator(5))
