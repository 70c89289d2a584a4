"""Are the test strings learned equally, with and without repeated training strings?"""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import np, pd, plt
from palimpsest.memorisation.figures.deduplication import VARIANTS
from palimpsest.memorisation.paper import PAPER
from palimpsest.memorisation.studies.deduplication import KIND

FIGURE = Figure(
    __name__,
    order=80,
    chapter="deduplication",
    title="How equally the test strings are learned",
    caption=(
        "Mean and standard deviation of the loss of the same test strings, by training set; "
        "in grey, of a model that knows the language and nothing else. See whether the band "
        "at optimal learning is as narrow without repetitions as for the high-entropy "
        "language."
    ),
    numbers="39",
    paper=PAPER,
    tables=(KIND,),
)
SPREAD_ALPHA = 0.22
PERFECT_SPREAD = {"color": "0.6", "linestyle": (0, (4, 2)), "linewidth": 0.9}
HEADROOM = 1.4  # for the text above the curves


@style.styled
def deduplication_spread(study: pd.DataFrame) -> plt.Figure:
    """The loss of the test strings, with its standard deviation over the strings.

    Parameters
    ----------
    study : table `deduplication` of one language; dedup-matched may be absent

    Source: appendix G, RQ8, figure 39; the perfect learner is our own.
    """
    variants = [variant for variant in VARIANTS if (study["variant"] == variant).any()]
    runs = study.drop_duplicates(["model", "seed", "variant", "epoch"])
    figure = elements.figure_of(3.4, "Loss of the test strings", study)
    panels = figure.subplots(1, len(variants), sharex=True, sharey=True, squeeze=False)[0]
    for axes, variant in zip(panels, variants, strict=True):
        draw_spread_of_strings(axes, runs[runs["variant"] == variant])
        axes.set_title(VARIANTS[variant][0].replace(" (", "\n("), weight="bold")
        axes.set_xlabel("epoch")
    # The first epochs are left out: an untrained model would set the scale.
    learned = runs[runs["epoch"] >= runs["optimal_epoch"]]
    panels[0].set_ylim(0, HEADROOM * (learned["test_loss_distinct"] + learned["test_spread"]).max())
    panels[0].set_ylabel("loss of the test strings\n(nats per token)")
    handles = [
        elements.line_handle("loss, mean over the strings"),
        elements.bar_handle("± one standard deviation over the strings", style.INK, SPREAD_ALPHA),
        elements.line_handle("perfect learner, mean over the strings", **style.BAYES_LINE),
        elements.line_handle("± one standard deviation over the strings", **PERFECT_SPREAD),
        elements.line_handle("optimal learning", **style.EPOCH_LINE),
    ]
    n = len(runs[["model", "seed"]].drop_duplicates())
    over = "one run" if n == 1 else f"{n} runs"
    elements.legend(figure, handles, f"Means and standard deviations: averaged over {over}.")
    return figure


def draw_spread_of_strings(axes: plt.Axes, runs: pd.DataFrame) -> None:
    mean = runs.groupby("epoch")[[
        "test_loss_distinct", "test_spread", "optimal_test_loss_distinct", "optimal_test_spread"
    ]].mean()  # fmt: skip
    optimum = runs["optimal_epoch"].mean()
    loss, spread, optimal, optimal_spread = mean.to_numpy().T
    axes.axhline(optimal[0], **style.BAYES_LINE)
    for side in (-1, 1):
        axes.axhline(optimal[0] + side * optimal_spread[0], **PERFECT_SPREAD)
    axes.fill_between(
        mean.index, loss - spread, loss + spread, color=style.INK, alpha=SPREAD_ALPHA, linewidth=0
    )
    axes.plot(mean.index, loss, color=style.INK)
    elements.mark_epoch(axes, optimum)
    found, perfect = np.interp(optimum, mean.index, spread), optimal_spread[0]
    said = f"standard deviation\nat optimal learning: {found:.3f}\nperfect learner: {perfect:.3f}"
    elements.write_in_corner(axes, said, 0.98, 0.97)
