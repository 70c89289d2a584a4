"""The lengths of a text's queries, and how perplexity depends on them."""

from __future__ import annotations

from collections.abc import Sequence

from palimpsest.density import kinds
from palimpsest.density.bins import CENTRAL, MOST_PERPLEXITY
from palimpsest.density.figures import palette
from palimpsest.density.figures.text_density import subject
from palimpsest.density.paper import PAPER
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt

FIGURE = Figure(
    __name__,
    order=95,
    chapter="own_texts",
    title="Lengths of a text's queries",
    caption=(
        "How long the queries are and, with a language model, their perplexity by length; "
        "shaded: the lengths whose density is shown. See whether perplexity is flat there, so "
        "that what is left is not an effect of length."
    ),
    numbers="9 to 11",
    paper=PAPER,
    tables=(kinds.TEXT_DENSITY,),
    drawn_for="text",
)
BINS, GROUPS = 25, 12
LEAST = 5  # queries of a group of lengths
HEIGHT_OF_ROW = 2.2  # inches, of each row of panels but the first
SHADE = {"color": "0.5", "alpha": 0.15, "linewidth": 0}


@style.styled
def text_density_lengths(density: pd.DataFrame) -> plt.Figure:
    """Lengths of queries, and perplexity in groups of equally many; a row for each set of queries.

    Source: LMD3, figures 9 to 11 and appendix A.7.
    """
    sets = dict(list(density.groupby("query_set", sort=False)))
    queries = {name: own.drop_duplicates("segment_id") for name, own in sets.items()}
    known = {name: own[own["perplexity"] <= MOST_PERPLEXITY] for name, own in queries.items()}
    has_groups = any(len(own) >= LEAST for own in known.values())
    height = 2.8 + HEIGHT_OF_ROW * (len(sets) - 1)
    figure = elements.figure_of(height, f"Lengths: {subject(density)}")
    grid = figure.subplots(len(sets), 1 + has_groups, squeeze=False)
    colour = palette.of_embedding(density["embedding"].iloc[0]).colour
    lengths = []
    for panels, name in zip(grid, sets, strict=True):
        of_set = "" if len(sets) == 1 else name
        low, high = draw_lengths(panels, queries[name], known[name], colour)
        panels[0].set_title(of_set)
        lengths.append(f"{of_set} {low:.0f} to {high:.0f}".strip())
    note = (
        f"Shaded: the central half of the lengths, {', '.join(lengths)} characters. "
        f"Perplexities above {MOST_PERPLEXITY:g} do not count."
    )
    handles = [elements.bar_handle("lengths that count", style.tinted("0.5", 0.3))]
    if has_groups:
        handles.append(elements.line_handle("median of equally many queries", colour, marker="o"))
    elements.legend(figure, handles, note)
    return figure


def draw_lengths(
    panels: Sequence[plt.Axes], queries: pd.DataFrame, known: pd.DataFrame, colour: str
) -> np.ndarray:
    """Draw the lengths of one set of queries; returns the ends of the lengths that count."""
    counted = known if len(known) >= LEAST else queries
    ends = np.quantile(
        counted["n_characters"], [(1 - CENTRAL) / 2, (1 + CENTRAL) / 2], method="inverted_cdf"
    )
    panels[0].hist(queries["n_characters"], BINS, color=colour, histtype="stepfilled")
    panels[0].set_ylabel("number of queries")
    if len(panels) > 1 and len(known) >= LEAST:
        draw_perplexity(panels[1], known, colour)
    for axes in panels:
        axes.axvspan(*ends, **SHADE)
        axes.set_xlabel("length (characters)")
    return ends


def draw_perplexity(axes: plt.Axes, known: pd.DataFrame, colour: str) -> None:
    """The median and the middle half of perplexity, in groups of equally many queries."""
    ordered = known.sort_values(["n_characters", "segment_id"])
    n_groups = max(1, min(GROUPS, len(ordered) // LEAST))
    numbers = np.arange(len(ordered)) * n_groups // len(ordered)
    groups = ordered.groupby(numbers)
    low, middle, high = (groups["perplexity"].quantile(share) for share in (0.25, 0.5, 0.75))
    lengths = groups["n_characters"].mean()
    axes.fill_between(lengths, low, high, color=style.tinted(colour, 0.4), linewidth=0)
    axes.plot(lengths, middle, color=colour, marker="o", markersize=4)
    axes.set_ylabel("perplexity per token\n(band: middle half)")
    axes.set_ylim(0, None)
