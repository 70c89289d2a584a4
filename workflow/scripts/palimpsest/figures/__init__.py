"""Figures: every one a pure function from a table to a matplotlib figure, listed in `FIGURES`.

A figure is added by adding one function and one entry.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
from matplotlib.figure import Figure

from palimpsest import tables
from palimpsest.errors import UserError, nearest
from palimpsest.figures.deduplication import deduplication
from palimpsest.figures.disagreement import disagreement, disagreement_scores
from palimpsest.figures.exact import exact
from palimpsest.figures.frequency import frequency
from palimpsest.figures.language import language
from palimpsest.figures.sizes import model_size, training_size
from palimpsest.figures.style import save
from palimpsest.figures.tradeoff import tradeoff
from palimpsest.figures.unlearning_epsilons import unlearning_epsilons, unlearning_hardness
from palimpsest.figures.unlearning_memorisation import unlearning_memorisation
from palimpsest.figures.unlearning_others import (
    unlearning_agreement,
    unlearning_effects,
    unlearning_metrics,
)
from palimpsest.figures.unlearning_scores import unlearning_scores, unlearning_tradeoff

__all__ = ["FIGURES", "FigureKind", "render", "save"]


MEMORISATION_PAPER = "Learning Without Memorizing Considered Infeasible"
UNLEARNING_PAPER = "Are we making progress in unlearning?"


@dataclass(frozen=True)
class FigureKind:
    """A figure that every language has one of.

    `draw` takes a table of each of the kinds `tables` (and, for a language, its summary). The
    caption is two sentences: what the figure shows, and what to see; `numbers` lists the figures
    of the paper `paper` that it corresponds to, if any.
    """

    study: str
    title: str
    caption: str
    numbers: str
    tables: tuple[str, ...]
    draw: Callable[..., Figure] = field(repr=False)
    paper: str = MEMORISATION_PAPER


FIGURES = {
    "language": FigureKind(
        study="languages",
        title="Lengths and probabilities of the strings",
        caption=(
            "How long the strings of a sample of the language are (left), and the exact "
            "probability of every distinct one in order of rank (right). "
            "See how steeply the probabilities fall: on a flat line all strings are about equally "
            "frequent, on a steep one a few strings are repeated over and over in any sample."
        ),
        numbers="11",
        tables=("language_sample",),
        draw=language,
    ),
    "disagreement": FigureKind(
        study="disagreement",
        title="The same string under every measure",
        caption=(
            "The loss of target strings of decreasing frequency (columns) when they are in the "
            "training data and when they are not, with the threshold and the start of "
            "memorisation under each measure (rows). "
            "Follow the dotted vertical lines down a column: the training is the same in every "
            "row, so wherever they move, it is the measures that disagree."
        ),
        numbers="1, 2, 13, 15 and 17",
        tables=("disagreement",),
        draw=disagreement,
    ),
    "disagreement_scores": FigureKind(
        study="disagreement",
        title="How much the same string is memorised",
        caption=(
            "The counterfactual and the contextual score of each target string over the epochs, "
            "from retraining without the string (solid) and from test strings of the same "
            "frequency (dashed). "
            "See whether the contextual curve stays at or below the counterfactual one, as Lemma 1 "
            "has it, and how close the cheap dashed curves come to the exact ones."
        ),
        numbers="14 and 16",
        tables=("disagreement",),
        draw=disagreement_scores,
    ),
    "exact": FigureKind(
        study="exact",
        title="Approximations beside exact retraining",
        caption=(
            "For every training string, the threshold and the start of memorisation by retraining "
            "the model without that string (across) and by the approximation that avoids it (up). "
            "See how near the markers keep to the diagonal, where the approximation would be "
            "exact: above it a string counts as memorised too easily (thresholds) or too late "
            "(starts)."
        ),
        numbers="",
        tables=("exact",),
        draw=exact,
    ),
    "tradeoff": FigureKind(
        study="tradeoff",
        title="Memorisation against learning",
        caption=(
            "The share of the training strings that is memorised, the losses and the bands of "
            "starts over the epochs, and below them the test loss and the memorisation of each "
            "model at its epoch of optimal learning. "
            "See how far each curve stands above its thin dashed one, the false alarms on strings "
            "never trained on, at the dotted lines: only what goes beyond it is evidence that "
            "optimal learning came with memorising."
        ),
        numbers="3, 18 to 20 and 23 to 30",
        tables=("tradeoff",),
        draw=tradeoff,
    ),
    "frequency": FigureKind(
        study="frequency",
        title="Frequent and infrequent strings",
        caption=(
            "Training loss and memorisation of the most frequent (solid) and the least frequent "
            "(dashed) distinct training strings under each measure. "
            "See in which panels the solid and the dashed curves part before the dotted lines: "
            "there, the measure has frequency decide what is memorised."
        ),
        numbers="4, 21 and 22",
        tables=("frequency",),
        draw=frequency,
    ),
    "deduplication": FigureKind(
        study="deduplication",
        title="Training without repetitions",
        caption=(
            "Losses, their spread over the test strings, memorisation and the band of starts for "
            "the training set as sampled, with its repetitions removed, and, where the study has "
            "one, for a set of the high-entropy language. "
            "See whether removing repetitions only moves the bars to later epochs or also makes "
            "them shorter, and how high the curves stand at the diamonds, which mark optimal "
            "learning."
        ),
        numbers="5, 39 and 40",
        tables=("deduplication",),
        draw=deduplication,
    ),
    "training_size": FigureKind(
        study="training_size",
        title="More training data",
        caption=(
            "Test loss and memorisation at the epoch of optimal learning for training sets of "
            "growing size (growing markers), a panel per measure. "
            "Follow the line towards the larger markers: to the left is better learning, and "
            "whether the line rises or falls on the way depends on the measure."
        ),
        numbers="6",
        tables=("training_size",),
        draw=training_size,
    ),
    "model_size": FigureKind(
        study="model_size",
        title="Larger models of a family",
        caption=(
            "Test loss and weighted contextual memorisation along the epochs for the models of "
            "each family, the darker the larger. "
            "Compare the diamonds, which mark optimal learning: further left is better learning, "
            "further down is less memorised on the way there."
        ),
        numbers="31 to 38",
        tables=("model_size",),
        draw=model_size,
    ),
    "unlearning_scores": FigureKind(
        study="unlearning",
        title="How well methods forget",
        caption=(
            "Forgetting quality, and the final score that also counts what is lost on other "
            "strings, of every unlearning method, between retraining at the top and doing nothing "
            "at the bottom. "
            "See how near a method comes to the dashed line, which retraining itself does not "
            "pass, and how far its marker moves to the left from the first panel to the second: "
            "that is what forgetting cost."
        ),
        numbers="4 and 5",
        tables=("unlearning_summary", "unlearning_scores"),
        draw=unlearning_scores,
        paper=UNLEARNING_PAPER,
    ),
    "unlearning_memorisation": FigureKind(
        study="unlearning",
        title="Forgotten under which measure",
        caption=(
            "The share of the forget strings that is memorised before unlearning, after it and by "
            "models that never saw them, a panel per measure of memorisation. "
            "See whether a method's bars end at the dashed line in all panels or only under "
            "recollection, where the strings are no longer recited but what the model gained from "
            "them is still there; it is that line and not 0 that unlearning should reach, as "
            "chance alone carries some retrained models past a threshold."
        ),
        numbers="",
        tables=("unlearning_memorisation",),
        draw=unlearning_memorisation,
        paper=UNLEARNING_PAPER,
    ),
    "unlearning_tradeoff": FigureKind(
        study="unlearning",
        title="Forgetting against keeping the rest",
        caption=(
            "The forgetting quality of every method against its accuracy on the retained and on "
            "the test strings, as a share of the accuracy of retrained models. "
            "See which methods stand to the upper right, and which pay for what they forget by "
            "falling below the dashed line."
        ),
        numbers="12",
        tables=("unlearning_scores",),
        draw=unlearning_tradeoff,
        paper=UNLEARNING_PAPER,
    ),
    "unlearning_epsilons": FigureKind(
        study="unlearning",
        title="Epsilon of the forget strings",
        caption=(
            "How many forget strings have which epsilon, a panel per method: 0 if unlearned and "
            "retrained models treat the string alike, the larger the better an attack can tell "
            "them apart. "
            "See how much stands to the right of the dotted line, where a string has no points, "
            "and whether a method fails on all strings a little or on some of them wholly."
        ),
        numbers="13",
        tables=("epsilons", "unlearning_scores"),
        draw=unlearning_epsilons,
        paper=UNLEARNING_PAPER,
    ),
    "unlearning_hardness": FigureKind(
        study="unlearning",
        title="Strings that are hard to forget",
        caption=(
            "The epsilon of each forget string summed over the methods, ranked (left), and "
            "against what training on the string had changed (right). "
            "See whether the bars climb, so that some strings are hard for every method, and "
            "whether the hard ones are those that the model had gained most from."
        ),
        numbers="14",
        tables=("unlearning_hardness",),
        draw=unlearning_hardness,
        paper=UNLEARNING_PAPER,
    ),
    "unlearning_agreement": FigureKind(
        study="unlearning",
        title="Whether methods find the same strings hard",
        caption=(
            "The rank correlation of the epsilons of two methods over the forget strings, for "
            "every pair of methods, with like ones beside each other. "
            "See whether the squares are of one colour, in which case it is the strings that "
            "decide what is hard to forget, or fall into blocks, in which case it is the methods."
        ),
        numbers="15",
        tables=("unlearning_agreement",),
        draw=unlearning_agreement,
        paper=UNLEARNING_PAPER,
    ),
    "unlearning_metrics": FigureKind(
        study="unlearning",
        title="Other metrics beside the forgetting quality",
        caption=(
            "Other measures of forgetting from the literature against the forgetting quality, a "
            "marker per method, with the value of retrained models as a dashed line. "
            "See whether the markers near the dashed line are those to the right: where they are "
            "not, the metric finds forgotten what an attack on single strings still finds."
        ),
        numbers="6 and 17",
        tables=("unlearning_metrics", "unlearning_summary"),
        draw=unlearning_metrics,
        paper=UNLEARNING_PAPER,
    ),
    "unlearning_effects": FigureKind(
        study="unlearning",
        title="What the forgetting quality depends on",
        caption=(
            "The forgetting quality when attacks are judged on the models they were fitted on and "
            "on others, and with growing numbers of models, of models in the pool of the "
            "bootstrap, and of repetitions. "
            "See how far the values move, and whether the order of the methods stays: only the "
            "order matters for comparing methods."
        ),
        numbers="19 to 21",
        tables=("unlearning_effects",),
        draw=unlearning_effects,
        paper=UNLEARNING_PAPER,
    ),
}


def render(name: str, inputs: Mapping[str, str | Path | list[str]], svg_path: str | Path) -> None:
    """Draw a figure from its tables and save it as SVG and PNG.

    Parameters
    ----------
    name : key of `FIGURES`
    inputs : files of one language, by name: `table` has the figure's first kind of table and any
        other kind stands under its own name, each one path or several, which are stacked; the
        figure `language` also has `summary`, the language's summary.json
    svg_path : where the SVG goes; a PNG is put beside it

    Raises
    ------
    UserError
        If the figure is unknown, or a table is broken, empty or of another kind.
    """
    if name not in FIGURES:
        raise UserError(
            f"unknown figure {name!r}; known: {', '.join(FIGURES)}{nearest(name, FIGURES)}"
        )
    kind = FIGURES[name]
    first, *others = kind.tables
    frames = [filled_table(inputs["table"], first)]
    frames += [filled_table(inputs[other], other) for other in others]
    summary = [json.loads(Path(inputs["summary"]).read_text())] if "summary" in inputs else []
    save(kind.draw(*frames, *summary), svg_path)


def filled_table(paths: str | Path | list[str], kind: str) -> pd.DataFrame:
    """Tables of a kind, stacked; every one must have rows."""
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    for path in paths:
        if tables.read(path, kind).empty:
            raise UserError(
                f"{path}: has no rows to draw; delete it and rerun: snakemake --cores 1 {path}"
            )
    return tables.read_all(paths, kind)
