"""The figures of the study `disagreement`: when each measure calls the same string memorised."""

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from palimpsest.figures import curves, style

# The exact evidence of every measure that has a row of panels.
EXACT = {
    "recollection": "constant",
    "counterfactual": "retraining",
    "contextual": "retraining",
    "bayes": "language",
}
RETRAINED = ("counterfactual", "contextual")


@style.styled
def disagreement(exact: pd.DataFrame) -> Figure:
    """Losses of the target strings with every measure's threshold and start.

    The panels show the first model. If there are several, a strip below shows the starts of all.

    Parameters
    ----------
    exact : table `disagreement` of one language

    Source: section 3.2, figures 1, 2, 13 and 15.
    """
    shown = first_model(exact)
    measures = [m for m, evidence in EXACT.items() if len(rows_of(shown, m, evidence))]
    models = list(exact["model"].unique())
    panels_height = 1.35 * len(measures) + 1.2
    strip_height = 0.5 * len(targets(exact)) + 1.3 + 0.05 * len(models) if len(models) > 1 else 0
    figure = curves.figure_of(
        panels_height + strip_height + 0.2,
        f"When a string is memorised: {curves.subject(shown)}",
    )
    panels = curves.panels_in(figure)
    if strip_height:
        panels, strip = figure.subfigures(2, 1, height_ratios=[panels_height, strip_height])
        draw_starts(strip, exact)
    draw_panels(panels, shown, measures)
    curves.legend(panels, line_handles(), averaged_note(shown))
    return figure


@style.styled
def disagreement_scores(exact: pd.DataFrame) -> Figure:
    """Counterfactual and contextual scores of the target strings, exact and approximate.

    Parameters
    ----------
    exact : table `disagreement` of one language; the first model is shown

    Source: section 3.2 and appendix F, figures 14 and 16.
    """
    shown = first_model(exact)
    figure = curves.figure_of(2.9, f"How much a string is memorised: {curves.subject(shown)}")
    roles = targets(shown)
    grid = figure.subplots(1, len(roles), sharex=True, sharey=True, squeeze=False)[0]
    measures = [m for m in RETRAINED if (shown["measure"] == m).any()]
    for axes, role in zip(grid, roles, strict=True):
        target = shown[shown["role"] == role]
        for measure in measures:
            draw_score(axes, target, measure)
        curves.share_axis(axes)
        axes.set_title(target_title(target))
        axes.set_xlabel("epoch")
    grid[0].set_ylabel(curves.SCORE)
    handles = [
        *curves.measure_handles(measures),
        curves.line_handle("exact (retraining)", linestyle=style.LINES["with"]),
        curves.line_handle("same-frequency approximation", linestyle=style.LINES["test"]),
        curves.line_handle("start (exact)", **style.EPOCH_LINE),
    ]
    note = averaged_note(shown)
    if shown["seed"].nunique() > 1:
        note += " The score of the averaged losses may lie outside the band."
    curves.legend(figure, handles, note)
    return figure


def first_model(exact: pd.DataFrame) -> pd.DataFrame:
    """The rows of the first model."""
    return exact[exact["model"] == exact["model"].iloc[0]]


def rows_of(exact: pd.DataFrame, measure: str, evidence: str) -> pd.DataFrame:
    """The rows of a measure and its evidence, by epoch."""
    wanted = (exact["measure"] == measure) & (exact["evidence"] == evidence)
    return exact[wanted].sort_values("epoch")


def targets(exact: pd.DataFrame) -> list[str]:
    """The roles s0, s1, ..., s10 in order of number."""
    return sorted(exact["role"].unique(), key=lambda role: (len(role), role))


def averaged(exact: pd.DataFrame) -> pd.DataFrame:
    """The rows for losses that were averaged over the seeds; starts are from the mean losses."""
    return exact[exact["seed"].isna()]


def target_title(target: pd.DataFrame) -> str:
    """The string's role, its number of copies in the training data, and its probability."""
    first = target.iloc[0]
    decades = first["log_prob"] / np.log(10)
    times = "once" if first["count"] == 1 else f"{first['count']} times"
    # Worked out in powers of ten, as a small probability underflows.
    mantissa, power = 10 ** (decades - np.floor(decades)), int(np.floor(decades))
    return f"{first['role']}: {times} in training\nprobability {mantissa:.1f}e{power}"


def averaged_note(shown: pd.DataFrame) -> str:
    """A note on the meaning of lines and bands; starts are from the averaged losses."""
    seeds = shown["seed"].dropna().nunique()
    if seeds == 1:
        return "One seed: lines without a band."
    return (
        f"Lines and starts: losses averaged over {seeds} seeds; bands: smallest to largest value "
        "of a seed."
    )


def draw_panels(figure: Figure, shown: pd.DataFrame, measures: list[str]) -> None:
    """A row of panels per measure, a column per target string."""
    roles = targets(shown)
    grid = figure.subplots(len(measures), len(roles), sharex=True, sharey=True, squeeze=False)
    for row, measure in zip(grid, measures, strict=True):
        exactly = rows_of(shown, measure, EXACT[measure])
        for axes, role in zip(row, roles, strict=True):
            draw_losses(axes, exactly[exactly["role"] == role], measure)
        name_row(row[-1], measure)
    for axes, role in zip(grid[0], roles, strict=True):
        axes.set_title(target_title(shown[shown["role"] == role]))
    for axes in grid[-1]:
        axes.set_xlabel("epoch")
    figure.supylabel("loss (nats per token, logarithmic scale)", fontsize=8)
    losses = shown.loc[shown["measure"].isin(measures), ["loss", "loss_without", "optimal_loss"]]
    thresholds = shown.loc[shown["measure"].isin(measures), ["threshold", "optimal_loss"]]
    curves.scale_losses(grid[0, 0], losses, floor=0.5 * thresholds.min().min())


def name_row(axes: Axes, measure: str) -> None:
    """The measure's name at the right of its row."""
    look = style.MEASURES[measure]
    axes.text(
        1.03, 0.5, look.label, transform=axes.transAxes, rotation=-90, va="center", ha="left",
        color=style.darkened(look.colour), weight="bold",
    )  # fmt: skip


def draw_losses(axes: Axes, target: pd.DataFrame, measure: str) -> None:
    """The losses of one string, its threshold under one measure, and the start."""
    if target.empty:
        return
    colour = style.MEASURES[measure].colour
    mean = averaged(target)
    axes.axhline(target["optimal_loss"].iloc[0], **style.BAYES_LINE)
    axes.plot(mean["epoch"], mean["test_loss"], **style.TEST_LINE)
    draw_averaged(axes, target, "loss", colour, linestyle=style.LINES["with"])
    if measure in RETRAINED:
        draw_averaged(axes, target, "loss_without", colour, linestyle=style.LINES["without"])
    if measure in ("recollection", "contextual"):
        axes.plot(
            mean["epoch"], mean["threshold"], color=colour, linewidth=1,
            linestyle=style.LINES["threshold"],
        )  # fmt: skip
    start = mean["start"].iloc[0] if len(mean) else np.nan
    curves.mark_epoch(axes, start)
    axes.text(
        0.97, 0.95, start_in_words(start), transform=axes.transAxes, ha="right", va="top",
        fontsize=7, bbox={"facecolor": "white", "alpha": 0.75, "linewidth": 0, "pad": 1},
    )  # fmt: skip


def draw_averaged(axes: Axes, target: pd.DataFrame, column: str, colour, **line) -> None:
    """A curve of the averaged losses, with a band over the seeds."""
    seeds = curves.spread(target[target["seed"].notna()], "epoch", column)
    axes.fill_between(
        seeds.index, seeds["min"], seeds["max"], color=colour, alpha=curves.BAND_ALPHA, linewidth=0
    )
    mean = averaged(target)
    axes.plot(mean["epoch"], mean[column], color=colour, **line)


def start_in_words(start: float) -> str:
    """The start for a reader."""
    return f"starts at epoch {start:.0f}" if np.isfinite(start) else "never starts"


def draw_score(axes: Axes, target: pd.DataFrame, measure: str) -> None:
    """The score of one string under one measure, exact and approximate."""
    colour = style.MEASURES[measure].colour
    exactly = rows_of(target, measure, "retraining")
    approximate = averaged(rows_of(target, measure, "same-frequency"))
    draw_averaged(axes, exactly, "score", colour, linestyle=style.LINES["with"])
    axes.plot(
        approximate["epoch"], approximate["score"], color=colour, linewidth=0.9,
        linestyle=style.LINES["test"],
    )  # fmt: skip
    for start in averaged(exactly)["start"].head(1):
        curves.mark_epoch(axes, start, colour)


def draw_starts(figure: Figure, exact: pd.DataFrame) -> None:
    """The start of every string under every measure, a marker per model."""
    axes = figure.subplots()
    evidence = {**EXACT, "recollection_accuracy": "constant"}
    mean = averaged(exact)
    mean = mean[mean["evidence"] == mean["measure"].map(evidence)]
    starts = mean.drop_duplicates(["model", "role", "measure"])
    models, roles = list(exact["model"].unique()), targets(exact)
    measures = style.measures_in(starts["measure"])
    last = exact["epoch"].max()
    for row in starts.itertuples():
        level = measures.index(row.measure) - (len(measures) - 1) / 2
        look = curves.model_marker(row.model, models, style.MEASURES[row.measure].colour)
        # Markers of models that never memorise are next to each other, so that they can be counted.
        beside = last * (1.06 + 0.14 * (models.index(row.model) + 1) / (len(models) + 1))
        x = row.start if np.isfinite(row.start) else beside
        y = roles.index(row.role) + 0.75 * level / len(measures)
        axes.plot(x, y, linestyle="none", **{**look, "markersize": 4, "alpha": 0.8})
    axes.axvspan(last * 1.04, last * 1.22, color="0.94", linewidth=0, zorder=0)
    axes.text(last * 1.13, -0.62, "never", ha="center", va="bottom", fontsize=7)
    axes.set_xlim(-0.02 * last, last * 1.22)
    axes.set_ylim(len(roles) - 0.4, -0.6)
    axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= last])
    axes.set_yticks(range(len(roles)), roles)
    axes.grid(axis="y", visible=False)
    for between in range(1, len(roles)):
        axes.axhline(between - 0.5, color="0.85", linewidth=0.6)
    axes.set(xlabel="start of memorisation (epoch)", ylabel="target string")
    axes.set_title("Starts of memorisation, one marker per model", weight="bold")
    curves.legend(figure, [*curves.measure_handles(measures), *curves.model_handles(models)])


def line_handles() -> list:
    """Entries for the lines of the panels."""
    return [
        curves.line_handle("loss, trained with the string", linestyle=style.LINES["with"]),
        curves.line_handle("loss, trained without the string", linestyle=style.LINES["without"]),
        curves.line_handle("constant threshold", linestyle=style.LINES["threshold"]),
        curves.BAYES_HANDLE,
        curves.line_handle("test loss", style.TEST_LINE["color"], linestyle=style.LINES["test"]),
        curves.line_handle("start of memorisation", **style.EPOCH_LINE),
    ]
