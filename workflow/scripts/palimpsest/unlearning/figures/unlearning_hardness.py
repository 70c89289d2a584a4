"""Strings that are hard to forget."""

from __future__ import annotations

from palimpsest.figures import copies, elements, style
from palimpsest.figures.copies import MARKER, copies_class, copies_handles, filled
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.unlearning import kinds
from palimpsest.unlearning.figures import method_rows
from palimpsest.unlearning.figures import seeds as by_seed
from palimpsest.unlearning.paper import PAPER

FIGURE = Figure(
    __name__,
    order=100,
    chapter="unlearning",
    title="Strings that are hard to forget",
    caption=(
        "Each forget string's epsilon summed over the methods, ranked (left), and against "
        "what training on it had changed (right), by seed. See whether some strings are hard "
        "for every method, and whether they are those that had helped the model most."
    ),
    numbers="14",
    paper=PAPER,
    tables=(kinds.HARDNESS,),
)
HARDNESS_HEIGHT = 2.5
GROUP_SPACE = 1.0  # bars, between the strings of two seeds
SEED_MARKERS = "osD^v"


@style.styled
def unlearning_hardness(hardness: pd.DataFrame) -> plt.Figure:
    """The forget strings by the sum of their epsilons over the methods, and by their loss gap.

    Source: Are we making progress in unlearning?, appendix A.9, figure 14, for the left panel; the
    right panel is Palimpsest's own.
    """
    heights = dict.fromkeys(hardness["model"].unique(), HARDNESS_HEIGHT)
    figure, parts = method_rows.figure_of_models(
        "Strings that are hard to forget", hardness, heights, 0.7
    )
    for model, part in parts:
        strings = hardness[hardness["model"] == model]
        bars, scatter = part.subplots(1, 2, width_ratios=[3, 2], sharey=True)
        draw_ranked(bars, strings)
        draw_against_gap(scatter, strings)
    seeds = by_seed.seeds_in(hardness)
    note = (
        "Each bar and each marker is a forget string. The sum is over its mean epsilons under "
        f"{int(hardness['n_methods'].max())} methods, each clipped at the largest epsilon that "
        "these models can show. The loss gap says how much training on the string had helped to "
        "predict it."
    )
    handles = copies_handles(hardness["count"])
    if len(seeds) > 1:
        note += " Every seed has its own strings."
        handles += [
            copies.shape_handle(f"seed {seed}", marker)
            for seed, marker in seed_markers(seeds).items()
        ]
    elements.legend(figure, handles, note)
    return figure


def seed_markers(seeds: list[int]) -> dict[int, str]:
    return {seed: SEED_MARKERS[place % len(SEED_MARKERS)] for place, seed in enumerate(seeds)}


def draw_ranked(axes: plt.Axes, strings: pd.DataFrame) -> None:
    middles, first = {}, 1.0
    for seed, of_seed in strings.groupby("seed"):
        ranked = of_seed.sort_values("epsilon_sum", kind="stable")
        fills = [filled("0.3", least) for least in copies_class(ranked["count"])]
        places = first + np.arange(len(ranked))
        axes.bar(
            places, ranked["epsilon_sum"], width=0.85, color=fills, edgecolor="0.3", linewidth=0.5
        )
        middles[seed] = places.mean()
        first = places[-1] + 1 + GROUP_SPACE
    axes.set_xlabel("rank of the forget string, easiest first")
    if len(middles) > 1:
        axes.set_xticks(list(middles.values()), [f"seed {seed}" for seed in middles])
        axes.tick_params(axis="x", length=0)
        axes.set_xlabel("rank of the forget string in its seed, easiest first")
    else:
        elements.whole_ticks(axes.xaxis)
    axes.set_xlim(0, first - GROUP_SPACE)
    axes.set_ylabel("sum of epsilon\nover the methods")
    axes.grid(axis="x", visible=False)


def draw_against_gap(axes: plt.Axes, strings: pd.DataFrame) -> None:
    markers = seed_markers(by_seed.seeds_in(strings))
    for (seed, least), members in strings.groupby(["seed", copies_class(strings["count"])]):
        axes.plot(
            members["loss_gap"], members["epsilon_sum"], linestyle="none", marker=markers[seed],
            markersize=MARKER, markerfacecolor=filled("0.3", least),
            markeredgecolor="0.3", markeredgewidth=0.7,
        )  # fmt: skip
    axes.set_xlabel("loss gap: retrained − original\n(nats per token)")
    found = [
        spearman(of_seed["loss_gap"], of_seed["epsilon_sum"])
        for _, of_seed in strings.groupby("seed")
    ]
    shown = ["undefined" if np.isnan(value) else signed(value) for value in found]
    axes.set_title(f"rank correlation {', '.join(shown)}")


def spearman(first: pd.Series, second: pd.Series) -> float:
    """Spearman's rank correlation of two columns; NaN for fewer than 3 rows or equal values."""
    ranks = pd.concat([first, second], axis=1).dropna().rank()
    if len(ranks) < 3 or (ranks.nunique() == 1).any():
        return np.nan
    return float(ranks.corr().iloc[0, 1])


def signed(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
