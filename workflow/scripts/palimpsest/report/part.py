"""A section's part of the report."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType, ModuleType
from typing import Any, NamedTuple

import pandas as pd
from markupsafe import Markup

from palimpsest.claims import those_of
from palimpsest.lazy_import import named
from palimpsest.section import Section

NOTHING = Markup()
EMPTY: Mapping = MappingProxyType({})


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


class Sentence(NamedTuple):
    """An answer from a section's tables: a number with its interval, and what to read it by."""

    text: str
    note: str = ""


class Answer(NamedTuple):
    """A claim that answers a section's question, if it was tested.

    `statistic` is the claim's number in words, and `tables` are the kinds that it is made from.
    """

    claim: str
    statistic: str
    tables: tuple[str, ...]


@dataclass(frozen=True)
class Part:
    """A section's part of the report; `name` is the section's, and `title` unless the part has one.

    Fields of type `Markup` are HTML, in whole paragraphs:

    - `introduction` is at the start of the report: the section's question and its source.
    - `reading` explains how to read the section's figures and numbers.
    - `claims` says who makes the claims; it is only shown if some claims were tested.
    - `opening` answers the section's question on its page, before the first figure.

    `questions` maps keys to questions in words; the section's claims are those whose `question` is
    one of these keys. `glossary` maps terms to their meaning. `figures_of` maps claims to the names
    of the figures that are drawn from the tables on which the claim is tested. `page` is the path
    of the section's own page, if it delivers one.

    `answers` and `sentences` answer the section's question at the top of the report; of the claims
    in `answers`, the first that was tested does.
    """

    name: str = ""
    title: str = ""
    introduction: Markup = NOTHING
    reading: Markup = NOTHING
    claims: Markup = NOTHING
    opening: Markup = NOTHING
    chapters: tuple[Chapter, ...] = ()
    questions: Mapping[str, str] = field(default_factory=dict)
    glossary: Mapping[str, str] = field(default_factory=dict)
    figures_of: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    page: str = ""
    answers: tuple[Answer, ...] = ()
    sentences: tuple[Sentence, ...] = ()

    @property
    def ids(self) -> list[str]:
        return [chapter.id for chapter in self.chapters]


def chapters_of(
    words: ModuleType, before: Mapping[str, Markup] = EMPTY, after: Mapping[str, Markup] = EMPTY
) -> tuple[Chapter, ...]:
    """The chapters of a template, with HTML before and after their figures, by their ids.

    `words` is the `module` of a template in which `chapters` maps ids to titles and texts.
    """
    return tuple(
        Chapter(name, title, text, before.get(name, NOTHING), after.get(name, NOTHING))
        for name, (title, text) in words.chapters.items()
    )


def with_words(
    words: ModuleType,
    questions: Mapping[str, str],
    before: Mapping[str, Markup] = EMPTY,
    after: Mapping[str, Markup] = EMPTY,
    chapters: tuple[Chapter, ...] | None = None,
) -> Part:
    """A part with introduction, reading, claims and glossary from the macros of a template.

    The chapters are those of the template, unless they are given; see `chapters_of`.
    """
    return Part(
        introduction=words.introduction(),
        reading=words.reading(),
        claims=words.claims(),
        chapters=chapters_of(words, before, after) if chapters is None else chapters,
        questions=questions,
        glossary=words.glossary,
    )


def part_of(
    section: Section,
    tables: Mapping[str, pd.DataFrame],
    facts: Mapping[str, Any] = EMPTY,
    page: str = "",
) -> Part:
    """The part of a section; its figures and claims alone if it has no module `report`.

    `tables` maps the names of the kinds in `section.reported` to stacked tables. `facts` are
    arguments that depend on the configuration, for the functions that have them. `page` is as in
    `Part`.
    """
    own = {
        "name": section.name,
        "title": section.title,
        "figures_of": figures_of_claims(section),
        "answers": answers_of(section, facts),
        "sentences": sentences_of(section, tables, facts),
        "page": page,
    }
    if section.location("report"):
        part = section.load("report")
        made = part(tables, **those_of(part, facts))
        return replace(made, **{**own, "title": made.title or section.title})
    ids = dict.fromkeys(figure.chapter for figure in section.figures)
    claims = section.location("claims")
    return Part(
        chapters=tuple(Chapter(name, section.title) for name in ids),
        questions=named(f"{claims.split(':')[0]}:QUESTIONS") if claims else EMPTY,
        **own,
    )


def answers_of(section: Section, facts: Mapping[str, Any] = EMPTY) -> tuple[Answer, ...]:
    """The claims that the section names as its answers.

    Raises `ValueError` if the section has no claim of these words.
    """
    claims = section.load("claims") if section.location("claims") else ()
    by_words = {claim.claim: claim.statistic.knowing(facts) for claim in claims}
    if unknown := [words for words in section.answers if words not in by_words]:
        raise ValueError(f"section {section.name!r} has no claim {unknown[0]!r}, which it names")
    return tuple(
        Answer(words, by_words[words].words, tuple(by_words[words].reads.split()))
        for words in section.answers
    )


def sentences_of(
    section: Section, tables: Mapping[str, pd.DataFrame], facts: Mapping[str, Any] = EMPTY
) -> tuple[Sentence, ...]:
    """The sentences of a section; none if it makes none. For `facts` see `part_of`."""
    if not section.location("sentences"):
        return ()
    sentences = section.load("sentences")
    return tuple(sentences(tables, **those_of(sentences, facts)))


def figures_of_claims(section: Section) -> dict[str, tuple[str, ...]]:
    """The names of the figures that read a table of each claim, those of its first table first."""
    claims = section.load("claims") if section.location("claims") else ()
    return {
        claim.claim: tuple(
            dict.fromkeys(
                figure.name
                for kind in claim.statistic.reads.split()
                for figure in section.figures
                if kind in {table.name for table in figure.tables}
            )
        )
        for claim in claims
    }
