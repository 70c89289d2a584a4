"""The figure of repeated strings."""

from palimpsest.figures.figure import Figure
from palimpsest.repetition.kinds import REPEATED

FIGURES = (
    Figure(
        name="repeated_strings",
        chapter="repetition",
        title="Repeated strings",
        caption=(
            "The share of the distinct training strings that occur more than once, for each seed. "
            "See whether it is far above 0: repeated strings are what deduplication removes."
        ),
        numbers="",
        paper="",
        tables=(REPEATED,),
        draw="palimpsest.repetition.drawing:repeated_strings",
    ),
)
