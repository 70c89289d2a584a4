"""How well estimates of density tell leaked strings from others."""

from __future__ import annotations

from palimpsest.density import kinds
from palimpsest.density.figures import palette
from palimpsest.density.figures.density_leakage import condition
from palimpsest.density.kinds import PLACEBO, TOP_K
from palimpsest.density.paper import PAPER
from palimpsest.estimates import intervals_over_seeds
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt, ticker

FIGURE = Figure(
    __name__,
    order=40,
    chapter="leakage",
    title="The bandwidth",
    caption=(
        "How well the density tells leaked strings from others, by bandwidth, kernel and "
        "embedding, for paraphrases (left) and for an exact copy (right). See where the "
        "curves fall to chance, and that placebos are at chance everywhere."
    ),
    numbers="15",
    paper=PAPER,
    tables=(kinds.SEPARATION,),
)
GREY = palette.STRINGS[PLACEBO].colour
CHANCE = {"color": "0.15", "linewidth": 0.8, "linestyle": (0, (1, 1.6))}


@style.styled
def density_separation(table: pd.DataFrame) -> plt.Figure:
    """The area under the curve by bandwidth, from tables `separation` of one language.

    Source: LMD3, appendix A.10.2 and figure 15.
    """
    embeddings = list(table["embedding"].unique())
    shown = shown_conditions(table)
    figure = elements.figure_of(
        2.0 * len(embeddings) + 1.1, "Separation of leaked strings by density", table
    )
    inner = elements.panels_in(figure)
    grid = inner.subplots(len(embeddings), len(shown), sharex=True, sharey=True, squeeze=False)
    for line, embedding in zip(grid, embeddings, strict=True):
        look = palette.of_embedding(embedding)
        for axes, (n_copies, paraphrases) in zip(line, shown, strict=True):
            is_shown = (table["n_copies"] == n_copies) & (table["paraphrases"] == paraphrases)
            draw_panel(axes, table[is_shown & (table["embedding"] == embedding)], look)
        line[0].set_ylabel(f"{look.label}\nAUC (0 to 1)")
    for axes, leak in zip(grid[0], shown, strict=True):
        axes.set_title(f"leaked: {condition(*leak)}", weight="bold")
    lowest = min(axes.dataLim.y0 for axes in grid.flat)
    grid[0, 0].set_ylim(min(0.4, lowest - 0.03), 1.03)
    inner.supxlabel("bandwidth of the kernel (distance of normalised embeddings)")
    note = (
        f"{elements.intervals_note(table)} AUC: probability that a leaked string has a higher "
        "density (or smaller mean distance) than one never leaked; ties count half. Grey: placebos "
        "in place of leaked strings."
    )
    elements.legend(figure, handles(table, embeddings), note)
    return figure


def shown_conditions(table: pd.DataFrame) -> list[tuple[int, int]]:
    asked = [(0, int(table["paraphrases"].max())), (1, 0)]
    known = set(zip(table["n_copies"], table["paraphrases"], strict=True))
    return [leak for leak in dict.fromkeys(asked) if leak in known] or sorted(known)[-1:]


def draw_panel(axes: plt.Axes, rows: pd.DataFrame, look: style.Look) -> None:
    kernels = rows[rows["estimator"] != TOP_K]
    bandwidths = sorted(kernels["bandwidth_or_k"].unique())
    last = bandwidths[-1]
    beside = last * (last / bandwidths[0]) ** 0.2 * 1.4
    axes.axhline(0.5, **CHANCE)
    for column, colour, marker, width in (
        ("placebo", GREY, palette.STRINGS[PLACEBO].marker, 0.9),
        ("auc", look.colour, look.marker, 1.3),
    ):
        for shift, (kernel, own) in zip((0.96, 1.04), kernels.groupby("estimator"), strict=False):
            found = palette.of_shares(
                intervals_over_seeds(own, ["bandwidth_or_k"], column).sort_index()
            )
            line = {"linestyle": palette.KERNELS.get(kernel, "-"), "linewidth": width}
            places = found.index.to_numpy() * shift
            elements.draw_means(axes, places, found, color=colour, marker=marker, **line)
        distance = intervals_over_seeds(
            rows[rows["estimator"] == TOP_K], ["bandwidth_or_k"], column
        )
        distance = palette.of_shares(distance)
        if len(distance):
            place = [beside * (0.93 if column == "placebo" else 1.07)]
            elements.draw_means(
                axes, place, distance.iloc[:1], color=colour, marker=marker, linestyle="none"
            )
    axes.set_xscale("log")
    axes.axvline(np.sqrt(last * beside), color="0.8", linewidth=0.8)
    k = rows.loc[rows["estimator"] == TOP_K, "bandwidth_or_k"]
    ticks = {value: f"{value:g}" for value in bandwidths}
    if len(k):
        ticks[beside] = f"distance\nto {k.iloc[0]:.0f}\nnearest"
    axes.xaxis.set_major_locator(ticker.FixedLocator(list(ticks)))
    axes.xaxis.set_major_formatter(ticker.FixedFormatter(list(ticks.values())))
    axes.xaxis.set_minor_locator(ticker.NullLocator())
    axes.set_xlim(bandwidths[0] / 1.4, beside * 1.7)


def handles(table: pd.DataFrame, embeddings: list[str]) -> list:
    kernels = [name for name in palette.KERNELS if name in set(table["estimator"])]
    return [
        *(elements.look_handle(palette.of_embedding(name)) for name in embeddings),
        elements.look_handle(palette.STRINGS[PLACEBO], "placebos"),
        *(
            elements.line_handle(f"{name} kernel", linestyle=palette.KERNELS[name])
            for name in kernels
        ),
        elements.line_handle("chance", **CHANCE),
    ]
