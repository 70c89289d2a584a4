"""The figure of a language.

Only modules that load fast are imported, because Snakemake reads this file before it builds its
graph of jobs.
"""

from palimpsest.datasets.kinds import LANGUAGE_SAMPLE, LANGUAGE_SUMMARY
from palimpsest.figures.figure import Figure

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
    paper="Learning Without Memorizing Considered Infeasible",
    tables=(LANGUAGE_SAMPLE, LANGUAGE_SUMMARY),
    draw="palimpsest.figures.language:language",
)
