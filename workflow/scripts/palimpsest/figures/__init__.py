"""Figures: every one a pure function from a table to a matplotlib figure, listed in `FIGURES`.

A figure is added by adding one function and one entry.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

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

__all__ = ["FIGURES", "FigureKind", "render", "save"]


@dataclass(frozen=True)
class FigureKind:
    """A figure that every language has one of.

    `draw` takes the table of kind `table` (and, for a language, its summary). The caption is two
    sentences: what the figure shows, and what to see; `paper` lists the figures of the paper that
    it corresponds to, if any.
    """

    study: str
    title: str
    caption: str
    paper: str
    table: str
    draw: Callable[..., Figure] = field(repr=False)


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
        paper="11",
        table="language_sample",
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
        paper="1, 2, 13, 15 and 17",
        table="disagreement",
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
        paper="14 and 16",
        table="disagreement",
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
        paper="",
        table="exact",
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
        paper="3, 18 to 20 and 23 to 30",
        table="tradeoff",
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
        paper="4, 21 and 22",
        table="frequency",
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
        paper="5, 39 and 40",
        table="deduplication",
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
        paper="6",
        table="training_size",
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
        paper="31 to 38",
        table="model_size",
        draw=model_size,
    ),
}


def render(
    name: str, table_path: str | Path, svg_path: str | Path, summary_path: str | Path | None = None
) -> None:
    """Draw a figure from its table and save it as SVG and PNG.

    Parameters
    ----------
    name : key of `FIGURES`
    table_path : table of the figure's kind, of one language
    svg_path : where the SVG goes; a PNG is put beside it
    summary_path : the language's summary.json, for the figure `language` only

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
    frame = tables.read(table_path, kind.table)
    if frame.empty:
        raise UserError(
            f"{table_path}: has no rows to draw; "
            f"delete it and rerun: snakemake --cores 1 {table_path}"
        )
    summary = [] if summary_path is None else [json.loads(Path(summary_path).read_text())]
    save(kind.draw(frame, *summary), svg_path)
