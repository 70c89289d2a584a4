"""The figure of a language: lengths and probabilities of its strings."""

from __future__ import annotations

from decimal import Decimal

from palimpsest.datasets.kinds import LANGUAGE_SAMPLE, LANGUAGE_SUMMARY
from palimpsest.datasets.paper import PAPER
from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt, ticker

FIGURE = Figure(
    __name__,
    order=10,
    chapter="languages",
    title="Lengths and probabilities of the strings",
    caption=(
        "The lengths of the strings in a sample of the language (left), and the exact probability "
        "of every distinct string by rank (right). See how steeply the probabilities fall: on a "
        "flat line, all strings are about equally frequent; on a steep line, a few strings are "
        "repeated over and over in any sample."
    ),
    numbers="11",
    paper=PAPER,
    tables=(LANGUAGE_SAMPLE, LANGUAGE_SUMMARY),
)
COLOUR = "0.3"


@style.styled
def language(sample: pd.DataFrame, summary: dict) -> plt.Figure:
    """Lengths of sampled strings, and their exact probabilities in order of rank.

    Parameters
    ----------
    sample : table `language_sample` of one language
    summary : content of its summary.json

    Source: appendix E, figure 11.
    """
    figure = elements.figure_of(2.9, f"Strings of language {summary['language']}")
    lengths, ranks = figure.subplots(1, 2)
    figure.supxlabel(facts(summary), x=0.01, ha="left", fontsize=7)
    draw_lengths(lengths, sample, summary["expected_length"])
    draw_ranks(ranks, sample)
    return figure


def facts(summary: dict) -> str:
    """Size, entropy and length of the language, in one line."""
    entropy = f"{summary['entropy']:.2f}"
    if (summary.get("entropy_standard_error") or 0) >= 0.001:
        entropy += f" ± {summary['entropy_standard_error']:.2g}"
    derivations = summary.get("n_derivations")
    counted = "infinitely many" if derivations is None else counted_in_powers(derivations)
    return (
        f"Entropy: {entropy} nats per string. Expected length: {summary['expected_length']:.1f}. "
        f"{summary['n_rules']} rules, {summary['n_terminals']} terminals, {counted} derivations"
        f"{' (ambiguous)' if summary['ambiguous'] else ''}."
    )


def counted_in_powers(n: float) -> str:
    """A count for a reader: all digits up to a million, then powers of ten, for any size."""
    return f"{int(n):,}" if n < 1e6 else f"{Decimal(n):.1e}".replace("e+", "e")


def draw_lengths(axes: plt.Axes, sample: pd.DataFrame, expected: float) -> None:
    share = sample.groupby("length")["count"].sum() / sample["count"].sum()
    axes.bar(share.index, share, width=1, color=COLOUR, linewidth=0)
    elements.mark_epoch(axes, expected)
    axes.set_xlim(share.index.min() - 3, share.index.max() + 3)
    axes.set_ylim(0, 1.15 * share.max())
    elements.whole_ticks(axes.xaxis, 6)
    axes.set(xlabel="length (terminals)", ylabel="share of the sampled strings")
    axes.set_title(f"{sample['count'].sum():,} sampled strings; dotted: expected length")


def draw_ranks(axes: plt.Axes, sample: pd.DataFrame) -> None:
    """Exact probability by rank, both in powers of ten.

    The y axis is linear in the log probability, because a small probability would underflow.
    """
    decades = np.sort(sample["log_prob"])[::-1] / np.log(10)
    rank = np.arange(1, len(decades) + 1)
    axes.plot(rank, decades, color=COLOUR, drawstyle="steps-mid")
    axes.set_xscale("log")
    middle, reach = (decades[0] + decades[-1]) / 2, max(decades[0] - decades[-1], 2)
    axes.set_ylim(middle - 0.55 * reach, middle + 0.55 * reach)
    elements.whole_ticks(axes.yaxis, 6)
    axes.yaxis.set_major_formatter(ticker.FuncFormatter(lambda value, _: f"$10^{{{value:.0f}}}$"))
    axes.set(xlabel="rank among the distinct sampled strings", ylabel="probability of the string")
    axes.set_title(f"{len(rank):,} distinct strings, exact probabilities")
