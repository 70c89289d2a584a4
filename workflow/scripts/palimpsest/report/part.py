"""A section's part of the report."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pandas as pd
from markupsafe import Markup

from palimpsest.section import Section

NOTHING = Markup()


@dataclass(frozen=True)
class Chapter:
    """A chapter: a heading, a paragraph, and HTML before and after its figures.

    The chapter's figures are those whose `Figure.chapter` equals `id`. A chapter without figures
    and without `before` and `after` is left out.
    """

    id: str
    title: str
    text: str = ""
    before: Markup = NOTHING
    after: Markup = NOTHING


@dataclass(frozen=True)
class Part:
    """A section's part of the report; `title` is the section's title.

    Fields of type `Markup` are HTML, in whole paragraphs:

    - `introduction` is at the start of the report: the section's question and its source.
    - `reading` explains how to read the section's figures and numbers.
    - `claims` says who makes the claims; it is only shown if some claims were tested.

    `questions` maps keys to questions in words; the section's claims are those whose `question` is
    one of these keys. `glossary` maps terms to their meaning.
    """

    title: str = ""
    introduction: Markup = NOTHING
    reading: Markup = NOTHING
    claims: Markup = NOTHING
    chapters: tuple[Chapter, ...] = ()
    questions: Mapping[str, str] = field(default_factory=dict)
    glossary: Mapping[str, str] = field(default_factory=dict)


def part_of(section: Section, tables: Mapping[str, pd.DataFrame]) -> Part:
    """The part of a section; only the title if the section has no part.

    `tables` maps the names of the kinds in `section.reported` to stacked tables.
    """
    if section.report is None:
        return Part(section.title)
    return replace(section.load("report")(tables), title=section.title)
