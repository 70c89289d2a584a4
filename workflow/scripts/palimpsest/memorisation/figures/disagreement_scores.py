"""How much each measure calls the same string memorised."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.memorisation.figures import targets
from palimpsest.memorisation.figures.disagreement import RETRAINED
from palimpsest.memorisation.paper import PAPER
from palimpsest.memorisation.studies.disagreement import KIND

FIGURE = Figure(
    __name__,
    order=20,
    chapter="disagreement",
    title="How much the same string is memorised",
    caption=(
        "The scores of each target string, from retraining without it (solid) and from unseen "
        "strings of the same frequency (dashed). See whether the contextual curve stays at or "
        "below the counterfactual one, as Lemma 1 says, and how near dashed is to solid."
    ),
    numbers="14 and 16",
    paper=PAPER,
    tables=(KIND,),
)


@style.styled
def disagreement_scores(exact: pd.DataFrame) -> plt.Figure:
    """Counterfactual and contextual scores of the target strings, exact and approximate.

    Parameters
    ----------
    exact : table `disagreement` of one language; the first model is shown

    Source: section 3.2 and appendix F, figures 14 and 16.
    """
    shown = targets.first_model(exact)
    figure = elements.figure_of(2.9, "How much a string is memorised", shown)
    roles = targets.roles(shown)
    grid = figure.subplots(1, len(roles), sharex=True, sharey=True, squeeze=False)[0]
    measures = [m for m in RETRAINED if (shown["measure"] == m).any()]
    for axes, role in zip(grid, roles, strict=True):
        target = shown[shown["role"] == role]
        for measure in measures:
            draw_score(axes, target, measure)
        elements.share_axis(axes)
        axes.set_title(targets.target_title(target))
        axes.set_xlabel("epoch")
    grid[0].set_ylabel(elements.SCORE)
    handles = [
        *elements.measure_handles(measures),
        elements.line_handle("exact (retraining)", linestyle=style.LINES["with"]),
        elements.line_handle("same-frequency approximation", linestyle=style.LINES["test"]),
        elements.line_handle("start (exact)", **style.EPOCH_LINE),
    ]
    elements.legend(figure, handles, scores_note(shown))
    return figure


def scores_note(shown: pd.DataFrame) -> str:
    n_seeds = shown["seed"].dropna().nunique()
    if n_seeds == 1:
        return "One seed: lines without a band."
    return (
        f"Lines: mean of the scores of {n_seeds} seeds; bands: smallest to largest score of a "
        "seed. Starts: of the losses averaged over the seeds."
    )


def draw_score(axes: plt.Axes, target: pd.DataFrame, measure: str) -> None:
    colour = style.MEASURES[measure].colour
    exactly = targets.rows_of(target, measure, "retraining")
    approximate = targets.averaged(targets.rows_of(target, measure, "same-frequency"))
    targets.draw_averaged(
        axes, exactly, "score", colour, mean="expected_score", linestyle=style.LINES["with"]
    )
    axes.plot(
        approximate["epoch"], approximate["expected_score"], color=colour, linewidth=0.9,
        linestyle=style.LINES["test"],
    )  # fmt: skip
    for start in targets.averaged(exactly)["start"].head(1):
        elements.mark_epoch(axes, start, colour)
