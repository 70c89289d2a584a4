"""What a section gives to the report."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pandas as pd
from markupsafe import Markup

from palimpsest.section import Section

NOTHING = Markup()


@dataclass(frozen=True)
class Chapter:
    """A chapter: a heading, a paragraph, and what stands before and after its figures.

    Its figures are those whose `Figure.chapter` is its `id`. A chapter that has no figure and
    nothing before or after them is left out.
    """

    id: str
    title: str
    text: str = ""
    before: Markup = NOTHING
    after: Markup = NOTHING


@dataclass(frozen=True)
class Part:
    """A section's part of the report; `title` is the section's.

    What is `Markup` is HTML, whole paragraphs of it:

    - `introduction` opens the report: the section's question, and where it comes from.
    - `reading` tells how to read the section's figures and numbers.
    - `claims` tells whose the claims are. It stands in the report if some were tested.

    The claims of the section are those whose question is a key of `questions`, which maps it to
    the question in words. `glossary` maps terms to their meaning.
    """

    title: str = ""
    introduction: Markup = NOTHING
    reading: Markup = NOTHING
    claims: Markup = NOTHING
    chapters: tuple[Chapter, ...] = ()
    questions: Mapping[str, str] = field(default_factory=dict)
    glossary: Mapping[str, str] = field(default_factory=dict)


def part_of(section: Section, tables: Mapping[str, pd.DataFrame]) -> Part:
    """The part of a section; of one that has none to give, the title alone.

    `tables` are those of the kinds `section.reported`, stacked, by the name of their kind.
    """
    if section.report is None:
        return Part(section.title)
    return replace(section.load("report")(tables), title=section.title)
