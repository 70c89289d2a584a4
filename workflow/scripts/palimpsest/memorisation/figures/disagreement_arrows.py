"""The scores of target strings as arrows, from the threshold of a measure to the loss."""

from __future__ import annotations

from palimpsest.figures import elements, style
from palimpsest.figures.figure import Figure
from palimpsest.figures.libraries import pd, plt
from palimpsest.memorisation.figures import targets
from palimpsest.memorisation.paper import PAPER
from palimpsest.memorisation.studies.disagreement import KIND

FIGURE = Figure(
    __name__,
    order=30,
    chapter="disagreement",
    title="Scores as arrows",
    caption=(
        "The loss of each target string with and without it in the training data; arrows go "
        "from a measure's threshold at the last epoch down to the loss. See that the "
        "contextual arrow is never longer than the counterfactual one."
    ),
    numbers="17",
    paper=PAPER,
    tables=(KIND,),
)
MEASURES = ("recollection", "counterfactual", "contextual")
GUIDE = {"linewidth": 0.6, "linestyle": "-"}
LOWEST = {"marker": "o", "markersize": 3.5, "linestyle": "none"}
THRESHOLD = {"linewidth": 1, "linestyle": style.LINES["threshold"]}
HEADROOM = 3  # the axis ends at this multiple of the highest threshold of the last epoch


@style.styled
def disagreement_arrows(exact: pd.DataFrame) -> plt.Figure:
    """Losses of the target strings; to the right, an arrow per measure for the last epoch.

    Parameters
    ----------
    exact : table `disagreement` of one language; the first model is shown

    Source: section 3.1, figure 1; appendix D, Lemma 1, figure 17.
    """
    shown = targets.averaged(targets.first_model(exact))
    measures = [m for m in MEASURES if len(targets.rows_of(shown, m, targets.EXACT[m]))]
    last = shown[shown["epoch"] == shown["epoch"].max()]
    figure = elements.figure_of(4.0, "Scores as arrows", shown)
    roles = targets.roles(shown)
    panels = figure.subplots(1, len(roles), sharex=True, sharey=True, squeeze=False)[0]
    for axes, role in zip(panels, roles, strict=True):
        target = shown[shown["role"] == role]
        draw_losses(axes, target)
        for place, measure in enumerate(measures):
            draw_measure(
                axes, targets.rows_of(target, measure, targets.EXACT[measure]), measure, place
            )
        axes.set_title(targets.target_title(target))
        axes.set_xlabel("epoch")
    of_measures = pd.concat([targets.rows_of(last, m, targets.EXACT[m]) for m in measures])
    highest = HEADROOM * of_measures["threshold"].max()
    elements.scale_losses(panels[0], of_measures[["loss", "loss_without", "threshold"]])
    panels[0].set_ylim(0.7 * of_measures[["loss", "threshold"]].min().min(), highest)
    panels[0].set_ylabel(elements.LOSS)
    elements.legend(figure, line_handles(measures), note(targets.first_model(exact)))
    return figure


def draw_losses(axes: plt.Axes, target: pd.DataFrame) -> None:
    with_string = target.drop_duplicates("epoch").sort_values("epoch")
    axes.plot(
        with_string["epoch"], with_string["loss"], color=style.INK, linestyle=style.LINES["with"]
    )
    without = targets.rows_of(target, "counterfactual", "retraining")
    axes.plot(
        without["epoch"], without["loss_without"], color=style.INK,
        linestyle=style.LINES["without"],
    )  # fmt: skip
    # The arrows stand beyond the last epoch; a guide leads from the loss to their heads.
    last, end = with_string.iloc[-1], arrow_at(with_string["epoch"].max(), len(MEASURES))
    axes.axvspan(last["epoch"] * 1.03, end, color="0.95", linewidth=0, zorder=0)
    axes.hlines(last["loss"], last["epoch"], end, style.INK, **GUIDE)
    axes.set_xlim(-0.03 * last["epoch"], end)
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= last["epoch"]])


def draw_measure(axes: plt.Axes, rows: pd.DataFrame, measure: str, place: int) -> None:
    colour, last = style.MEASURES[measure].colour, rows.iloc[-1]
    x = arrow_at(last["epoch"], place)
    if measure != "counterfactual":  # its threshold is the loss without the string
        axes.plot(rows["epoch"], rows["threshold"], color=colour, **THRESHOLD)
    if measure == "contextual":
        lowest = rows.loc[rows["loss_without"].idxmin()]
        axes.plot(lowest["epoch"], lowest["loss_without"], color=colour, **LOWEST)
    axes.hlines(last["threshold"], last["epoch"], x, colour, **GUIDE)
    elements.mark_epoch(axes, last["start"], colour)
    if last["threshold"] > last["loss"]:
        axes.annotate(
            "", (x, last["loss"]), (x, last["threshold"]),
            arrowprops={"arrowstyle": "->", "color": colour, "linewidth": 1.2, "shrinkA": 0,
                        "shrinkB": 0, "mutation_scale": 7},
        )  # fmt: skip
    score = f"{style.MEASURES[measure].label} {last['score']:.2f}"
    elements.write_in_corner(
        axes, score, 0.98, 0.98 - 0.065 * place, pad=0.5, color=style.darkened(colour)
    )


def arrow_at(last_epoch: int, place: int) -> float:
    return last_epoch * (1.08 + 0.09 * place)


def note(shown: pd.DataFrame) -> str:
    seeds = shown["seed"].dropna().nunique()
    of = "One seed." if seeds == 1 else f"Losses averaged over {seeds} seeds."
    return (
        f"{of} Arrows: from the threshold to the loss at epoch {shown['epoch'].max()}; numbers: "
        "the scores at this epoch. On this axis, the longer of two arrows has the higher score, "
        "but recollection has no degrees: its score is 1 or 0."
    )


def line_handles(measures: list[str]) -> list:
    lowest = elements.line_handle(
        "lowest loss without the string", style.MEASURES["contextual"].colour, **LOWEST
    )
    return [
        *elements.measure_handles(measures),
        elements.line_handle("loss, trained with the string", linestyle=style.LINES["with"]),
        elements.line_handle("loss, trained without the string", linestyle=style.LINES["without"]),
        elements.line_handle("constant threshold", **THRESHOLD),
        elements.line_handle("start of memorisation", **style.EPOCH_LINE),
        *([lowest] if "contextual" in measures else []),
    ]
