"""The figures of a language.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.
"""

from palimpsest.datasets.kinds import DERIVATION_TREE, LANGUAGE_SAMPLE, LANGUAGE_SUMMARY
from palimpsest.figures.figure import Figure

PAPER = "Learning Without Memorizing Considered Infeasible"
LANGUAGE = Figure(
    name="language",
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
    draw="palimpsest.figures.language:language",
)
DERIVATION = Figure(
    name="derivation",
    chapter="languages",
    title="The derivation of a string",
    caption=(
        "A typical string of the language in its most probable derivation: a box is a "
        "non-terminal with the probability of its rule, above the symbols that it derives, and a "
        "darker box is a less probable rule. See in the bars where the string surprises somebody "
        "who knows the language and the symbols before: only there can a model gain by memorising "
        "the string."
    ),
    numbers="12",
    paper=PAPER,
    tables=(DERIVATION_TREE,),
    draw="palimpsest.figures.derivation:derivation",
)
FIGURES = (LANGUAGE, DERIVATION)
