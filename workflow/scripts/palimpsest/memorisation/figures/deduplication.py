"""Does removing repeated strings from the training data prevent memorisation?"""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.memorisation.paper import PAPER
from palimpsest.memorisation.studies.deduplication import KIND

FIGURE = Figure(
    __name__,
    order=70,
    chapter="deduplication",
    title="Training without repetitions",
    caption=(
        "Losses, memorisation and the band of starts for training data as sampled, without "
        "repetitions and, if the study has one, from the high-entropy language. See whether "
        "removing repetitions only moves the bars to later epochs or also makes them shorter."
    ),
    numbers="5 and 40",
    paper=PAPER,
    tables=(KIND,),
)
# Variants differ both in line style and in strength of colour.
VARIANTS = {
    "base": ("as sampled (base)", 1.0),
    "dedup": ("deduplicated (dedup)", 0.75),
    "dedup-matched": ("high-entropy language (dedup-matched)", 0.5),
}
MEASURES = ("recollection", "contextual")
LOSSES = {
    "train_loss": ("training loss", elements.LOSS),
    "test_loss": ("test loss", elements.LOSS),
    "test_spread": (
        "spread of the test loss",
        "standard deviation over\ntest strings (nats per token)",
    ),
}
OPTIMUM = {"marker": "D", "markersize": 4.5, "markeredgecolor": "white", "markeredgewidth": 0.6}


@style.styled
def deduplication(study: pd.DataFrame) -> plt.Figure:
    """Learning and memorisation: with repeated strings, without them, and on the counterpart.

    Parameters
    ----------
    study : table `deduplication` of one language; dedup-matched may be absent

    Source: section 4, RQ4, figure 5; appendix G, figure 40.
    """
    variants = [variant for variant in VARIANTS if (study["variant"] == variant).any()]
    measures = [measure for measure in MEASURES if (study["measure"] == measure).any()]
    figure = elements.figure_of(5.0, "Deduplicating the training strings", study)
    upper, lower = figure.subplots(2, 3)
    for axes, column in zip(upper, LOSSES, strict=True):
        draw_loss(axes, study, variants, column)
    for axes in upper[:2]:
        elements.scale_losses(axes, study[["train_loss", "test_loss"]])
    for axes, measure in zip(lower, measures, strict=False):
        draw_fraction(axes, study, variants, measure)
    draw_bands(lower[2], study, variants, measures)
    for axes in lower[len(measures) : 2]:
        axes.remove()
    note = (
        f"{elements.spread_note(study)} Bars: epochs at which 10 % to 90 % of the distinct strings "
        "start, in the colour of the measure."
    )
    elements.legend(figure, legend_handles(variants), note)
    return figure


def draw_loss(axes: plt.Axes, study: pd.DataFrame, variants: list[str], column: str) -> None:
    """A loss does not depend on the measure, so one row per run and epoch is used."""
    title, label = LOSSES[column]
    runs = study.drop_duplicates(["model", "seed", "variant", "epoch"])
    for variant in variants:
        draw_variant(axes, runs, variant, column, style.INK)
    axes.set_ylim(bottom=0)
    axes.set(xlabel="epoch", ylabel=label)
    axes.set_title(title, weight="bold")


def draw_fraction(axes: plt.Axes, study: pd.DataFrame, variants: list[str], measure: str) -> None:
    look = style.MEASURES[measure]
    rows = study[study["measure"] == measure]
    for variant in variants:
        draw_variant(axes, rows, variant, "share_memorised_distinct", look.colour)
    elements.share_axis(axes)
    axes.set(xlabel="epoch", ylabel="fraction of distinct\nstrings memorised")
    elements.name_panel(axes, measure)


def draw_variant(
    axes: plt.Axes, rows: pd.DataFrame, variant: str, column: str, colour: str
) -> None:
    of_variant = rows[rows["variant"] == variant]
    curve = elements.spread(of_variant, "epoch", column)
    if curve.empty:
        return
    shade = style.tinted(colour, VARIANTS[variant][1])
    elements.draw_spread(axes, curve, shade, linestyle=style.LINES[variant])
    optimum = of_variant["optimal_epoch"].mean()
    axes.plot(optimum, np.interp(optimum, curve.index, curve["mean"]), color=shade, **OPTIMUM)


def draw_bands(
    axes: plt.Axes, study: pd.DataFrame, variants: list[str], measures: list[str]
) -> None:
    levels = [(measure, variant) for measure in measures for variant in variants]
    for level, (measure, variant) in enumerate(levels):
        rows = study[(study["measure"] == measure) & (study["variant"] == variant)]
        shade = style.tinted(style.MEASURES[measure].colour, VARIANTS[variant][1])
        band = rows[["start_p10", "start_p90"]].dropna()
        never = band["start_p10"] > study["epoch"].max()
        if len(band) and never.all():
            write_never(axes, level, rows["optimal_epoch"].mean(), study["epoch"].max(), measure)
        elif len(band):
            first, last = band.clip(upper=study["epoch"].max()).mean()
            axes.barh(level, last - first, left=first, height=0.55, color=shade,
                      edgecolor=shade, linewidth=1.2)  # fmt: skip
        axes.plot(rows["optimal_epoch"].mean(), level, color=style.INK, **OPTIMUM)
    axes.set_xlim(0, study["epoch"].max())
    axes.set_ylim(len(levels) - 0.4, -0.6)
    axes.set_yticks(range(len(levels)), [variant.removeprefix("dedup-") for _, variant in levels])
    axes.grid(axis="y", visible=False)
    axes.set(xlabel="epoch", ylabel="training set")
    axes.set_title("band of starts", weight="bold")


def write_never(axes: plt.Axes, level: int, optimum: float, last: float, measure: str) -> None:
    """Words instead of a bar, on the side away from the diamond."""
    left = optimum > last / 2
    axes.text(
        0.02 * last if left else 0.98 * last, level, "never", fontsize=7, va="center",
        ha="left" if left else "right", color=style.darkened(style.MEASURES[measure].colour),
    )  # fmt: skip


def legend_handles(variants: list[str]) -> list:
    lines = [
        elements.line_handle(
            VARIANTS[variant][0],
            style.tinted(style.INK, VARIANTS[variant][1]),
            linestyle=style.LINES[variant],
        )
        for variant in variants
    ]
    optimum = elements.line_handle(
        "optimal learning (lowest test loss)", linestyle="none", **OPTIMUM
    )
    return [*lines, optimum]
