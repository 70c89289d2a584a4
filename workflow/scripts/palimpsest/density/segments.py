"""Texts as segments: windows of words, cut by one rule for a corpus and for queries.

A text's words are what is between blanks, tabs and line breaks. The first window begins at the
first word, and each further window begins `stride` words later, until a window reaches the end of
the text. So the last window may be shorter, and a text that is shorter than a window is one
segment. Windows do not reach from one text into the next. Equal texts have equal segments, so a
query that is also a text of the corpus is found at distance 0.

Source: LMD3: Language Model Data Density Dependence, appendices A.1.1, A.1.2 and A.2.5.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from palimpsest.corpora import String, TextCorpus, text_of
from palimpsest.datasets.strings import string_id
from palimpsest.density.kinds import SEGMENTS
from palimpsest.density.sizes import check_text
from palimpsest.density.texts import FIELD, TEXTS
from palimpsest.errors import Notice, UserError
from palimpsest.making import makes
from palimpsest.plain_text import same_when_composed, unseen_characters
from palimpsest.tables import user_tables
from palimpsest.tables.user_values import written

CORPUS, QUERY = "corpus", "query"
EXAMPLE = '{"text": "some words"}'


def windows(words: Sequence[str], window: int, stride: int) -> list[String]:
    """The windows of a text's words, see above; every word is in at least one.

    `window` is at least 1, and `stride` from 1 to `window`.
    """
    last = max(0, len(words) - window)
    starts = range(0, last + stride, stride)
    return [tuple(words[start : start + window]) for start in starts]


class Segments(NamedTuple):
    """The segments of a file of texts.

    `documents` has the text of each segment: its number, from 1. `texts` has what tells the texts
    apart, a digest of the words of each.
    """

    corpus: TextCorpus
    documents: list[int]
    texts: list[str]


def segmented(path: str | Path, window: int, stride: int, field: str = FIELD) -> Segments:
    """A file of texts as a corpus of segments, without probabilities.

    A segment that occurs n times in the texts is a string of the corpus n times. Raises `UserError`
    as `read_texts` does.
    """
    segments, documents, texts = [], [], []
    for number, text in enumerate(read_texts(path, field), 1):
        # Each distinct word is kept in memory once.
        words = tuple(sys.intern(word) for word in text.split())
        own = windows(words, window, stride)
        segments += own
        documents += [number] * len(own)
        texts.append(string_id(words))
    return Segments(TextCorpus(str(path), segments), documents, texts)


@makes(SEGMENTS)
def of_text(
    corpus: str,
    queries: str,
    language: str,
    *,
    field: str,
    window: int,
    stride: int,
    neighbours: int,
    k: int,
    m1: int,
    m2: int,
) -> pd.DataFrame:
    """The segments of a text: those of its corpus, and of its queries.

    `corpus` and `queries` are paths, and `language` is the name of the text. `neighbours` and the
    sizes of an approximation (all 0: none) change no segment: the corpus must have enough of them.

    Raises `UserError` as `segmented` and `check_text` do.
    """
    of_corpus, of_queries = (segmented(path, window, stride, field) for path in (corpus, queries))
    name, sizes = f"density/texts/{language}", {"k": k, "m1": m1, "m2": m2}
    check_text(f"{name}/corpus", len(of_corpus.corpus.strings), neighbours, sizes if k else None)
    say_duplicates(name, of_corpus, of_queries)
    return tabulated(language, of_corpus, of_queries)


def tabulated(name: str, corpus: Segments, queries: Segments) -> pd.DataFrame:
    parts = [_rows(role, text) for role, text in ((CORPUS, corpus), (QUERY, queries))]
    return pd.concat(parts, ignore_index=True).assign(language=name)[SEGMENTS.names]


def _rows(role: str, text: Segments) -> pd.DataFrame:
    strings = text.corpus.strings
    counts = Counter(strings)
    # From the last to the first, so that a repeated segment keeps its first document.
    first = dict(zip(reversed(strings), reversed(text.documents), strict=True))
    joined = [text_of(segment) for segment in counts]
    return pd.DataFrame(
        {
            "role": role,
            "segment_id": [string_id(segment) for segment in counts],
            "text": joined,
            "n_words": [len(segment) for segment in counts],
            "n_characters": [len(words) for words in joined],
            "document": [first[segment] for segment in counts],
            "count": list(counts.values()),
        }
    )


def read_texts(path: str | Path, field: str = FIELD) -> Iterator[str]:
    """Yield the texts of a file: a field or column of each row, or each line of a .txt file.

    Empty lines are skipped.

    Raises `UserError` if the file cannot be read or has no text, or if a text is missing, null, no
    text, or without words. The message names the line or row, counted from 1.
    """
    found = False
    for where, text in user_tables.read_texts(path, TEXTS, field):
        _check(where, field, text)
        found = True
        yield text
    if not found:
        raise UserError(f"{path}: has no texts; write one text a row, such as {EXAMPLE}")


def _check(where: str, field: str, text: object) -> None:
    """Raise `UserError` unless a value is a text with words that can be written in UTF-8."""
    if not isinstance(text, str):
        what = "null" if text is None else written(text)
        raise UserError(f"{where}: {field!r} is {what}; must be a text: mend or delete the row")
    if not text.strip():
        raise UserError(f"{where}: {field!r} has no words; delete the row")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UserError(
            f"{where}: {field!r} has half a character (a lone surrogate), which no file in UTF-8 "
            "can hold; mend or delete the row"
        ) from None


def say_duplicates(name: str, corpus: Segments, queries: Segments) -> None:
    """Warn of repeated texts, and of words that only look alike; one line for each finding."""

    def say(what: str) -> None:
        warnings.warn(Notice(f"{name}: {what}"), stacklevel=3)

    known, asked = set(corpus.texts), set(queries.texts)
    for role, text, distinct, meaning in (
        ("corpus", corpus, known, "each copy counts"),
        ("queries", queries, asked, "each text is asked once"),
    ):
        if copies := len(text.texts) - len(distinct):
            say(f"copies of other texts in the {role}: {copies} of {len(text.texts)}; {meaning}")
    if shared := len(asked & known):
        say(
            f"queries that are also texts of the corpus: {shared} of {len(asked)}; they are at "
            "distance 0 from it"
        )
    words = {*corpus.corpus.alphabet.terminals, *queries.corpus.alphabet.terminals}
    if unseen := unseen_characters(words):
        named = ", ".join(f"U+{ord(character):04X}" for character in unseen[:3])
        n_words = sum(not set(unseen).isdisjoint(word) for word in words)
        say(
            f"words with a character that nobody sees, or that replaced another: {n_words}; such "
            f"characters are {named}; they are parts of the words: take them out if they mean "
            "nothing"
        )
    if groups := same_when_composed(words):
        say(
            f"words in two forms of the same characters: {len(groups)}, such as "
            f"{' and '.join(map(ascii, groups[0]))}; they count as different words: normalise the "
            "texts (NFC) if they are not"
        )
