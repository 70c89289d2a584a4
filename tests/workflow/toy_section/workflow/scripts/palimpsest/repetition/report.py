"""What the report says of repeated strings."""

import pandas as pd

from palimpsest.repetition.claims import QUESTIONS
from palimpsest.report.part import Chapter, Part

TEXT = "A sample of a language of low entropy holds the same string many times."


def part(tables: dict[str, pd.DataFrame]) -> Part:
    """One chapter, with the figures that stand in it."""
    chapter = Chapter("repetition", "Are strings repeated?", TEXT)
    return Part(chapters=(chapter,), questions=QUESTIONS)
