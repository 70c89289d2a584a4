"""Summaries of memorisation profiles as curves."""

import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from palimpsest.figures import curves, style
from palimpsest.profiles import summaries
from palimpsest.profiles.figures import looks
from palimpsest.profiles.kinds import LOG_LIKELIHOOD, PLACEBO, TRAINED

MACRO_BATCH = "macro-batch of the strings"


@style.styled
def instantaneous(table: pd.DataFrame) -> Figure:
    """The effect just after the treatment, above the learning rate of the steps.

    `table` holds tables `pooled_profile` of one language.

    Source: Causal Estimation of Memorisation Profiles, figure 3.
    """
    cells = summaries.instantaneous(summaries.estimates(table))
    figure = curves.figure_of(3.6, f"Just after training on a string: {looks.subject(table)}")
    top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
    draw_models(top, cells, "cohort")
    top.set_ylabel(looks.EFFECT)
    for model, colour in looks.colours(table).items():
        rates = cells[cells["model"] == model].sort_values("cohort")
        bottom.plot(rates["cohort"], rates["learning_rate"], color=colour, drawstyle="steps-mid")
    bottom.set(xlabel=MACRO_BATCH, ylabel="learning rate", ylim=(0, None))
    bottom.xaxis.set_major_locator(MaxNLocator(integer=True))
    curves.legend(figure, looks.handles(table), markers_note(table))
    return figure


@style.styled
def paths(table: pd.DataFrame) -> Figure:
    """The effect on the strings of each macro-batch over time, from just before their treatment.

    `table` holds tables `pooled_profile` of one language.

    Source: Causal Estimation of Memorisation Profiles, figure 1 (bottom).
    """
    cells = summaries.estimates(table)
    cells = cells[cells["time"] >= cells["cohort"] - 1]
    cohorts = sorted(cells["cohort"].unique())
    tints = {
        cohort: style.tinted(looks.MODELS, (place + 1) / len(cohorts))
        for place, cohort in enumerate(cohorts)
    }
    models = summaries.by_size(cells)
    figure = curves.figure_of(3.1, f"Memorisation paths: {looks.subject(table)}")
    row = figure.subplots(1, len(models), sharey=True, squeeze=False)[0]
    for axes, model in zip(row, models, strict=True):
        axes.axhline(0, **looks.ZERO)
        for cohort, own in cells[cells["model"] == model].groupby("cohort"):
            own = own.sort_values("time")
            axes.plot(own["time"], own["estimate"], color=tints[cohort])
            some = own[own["significant"]]
            axes.plot(some["time"], some["estimate"], "o", markersize=3.5, color=tints[cohort])
        axes.set_title(model)
        axes.set_xlabel("checkpoint (macro-batches)")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    row[0].set_ylabel(looks.EFFECT)
    ends = [
        curves.line_handle(f"macro-batch {cohort}", tints[cohort])
        for cohort in dict.fromkeys((cohorts[0], cohorts[-1]))
    ]
    note = f"{looks.runs_note(table).partition(';')[0]}. Markers: the simultaneous band excludes 0."
    curves.legend(figure, ends, note)
    return figure


@style.styled
def persistence(table: pd.DataFrame) -> Figure:
    """The effect by time since treatment, of trained strings and of placebos.

    `table` holds tables `pooled_persistence` of one language.

    Source: Causal Estimation of Memorisation Profiles, figure 4.
    """
    figure = curves.figure_of(3.1, f"How long memorisation lasts: {looks.subject(table)}")
    panels = figure.subplots(1, 2, sharey=True)
    titles = {TRAINED: "strings that are trained on", PLACEBO: "strings that are never trained on"}
    rows = table[table["outcome"] == LOG_LIKELIHOOD]
    for axes, (strings, title) in zip(panels, titles.items(), strict=True):
        axes.axvline(-0.5, **style.EPOCH_LINE, color=style.INK)
        draw_models(axes, rows[rows["strings"] == strings], "since")
        axes.set_title(title)
        axes.set_xlabel("macro-batches since the treatment")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    panels[0].set_ylabel(looks.EFFECT)
    treatment = curves.line_handle("treatment", **style.EPOCH_LINE)
    curves.legend(figure, [*looks.handles(table), treatment], markers_note(table))
    return figure


@style.styled
def residual(table: pd.DataFrame) -> Figure:
    """The effect at the end of training, from tables `pooled_profile` of one language.

    Source: Causal Estimation of Memorisation Profiles, figure 5.
    """
    cells = summaries.residual(summaries.estimates(table))
    figure = curves.figure_of(2.9, f"What is left at the end: {looks.subject(table)}")
    axes = figure.subplots()
    draw_models(axes, cells, "cohort")
    axes.set(xlabel=MACRO_BATCH, ylabel=looks.EFFECT)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    curves.legend(figure, looks.handles(table), markers_note(table))
    return figure


def markers_note(table: pd.DataFrame) -> str:
    """What the curves rest on, and what their markers mean."""
    return f"{looks.runs_note(table)} {looks.FILLED}"


def draw_models(axes, rows: pd.DataFrame, x: str) -> None:
    """A curve with its band for every model."""
    axes.axhline(0, **looks.ZERO)
    for model, colour in looks.colours(rows).items():
        looks.banded(axes, rows[rows["model"] == model], x, colour)
