"""Texts as segments: windows of words, cut by one rule for a corpus and for queries.

A text's words are what is between blanks, tabs and line breaks. The first window begins at the
first word, and each further window begins `stride` words later, until a window reaches the end of
the text. So the last window may be shorter, and a text that is shorter than a window is one
segment. Windows do not reach from one text into the next. Queries with responses are not cut.
Equal texts have equal segments, so a query that is also a text of the corpus is found at distance
0.

Source: LMD3: Language Model Data Density Dependence, appendices A.1.1, A.1.2 and A.2.5.
"""

from __future__ import annotations

import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pandas as pd

from palimpsest.corpora import String, TextCorpus, text_of
from palimpsest.datasets.strings import string_id
from palimpsest.density.kinds import SEGMENTS
from palimpsest.density.sizes import check_text
from palimpsest.density.texts import CORPUS, FIELD, QUERIES, QUERY, RESPONSE, TEXTS
from palimpsest.errors import Notice, UserError
from palimpsest.making import makes
from palimpsest.plain_text import same_when_composed, unseen_characters
from palimpsest.tables import user_tables
from palimpsest.tables.user_tables import TextRow
from palimpsest.tables.user_values import written

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

    `documents` has the text of each segment: its number, from 1. `names` has the name of each text,
    see `TextRow`, and `texts` what tells the texts apart, a digest of the words of each.
    `responses` has the response to each segment, by the segment; it is empty in a file without
    responses.
    """

    corpus: TextCorpus
    documents: list[int]
    names: list[str]
    texts: list[str]
    responses: Mapping[String, str] = MappingProxyType({})


def segmented(path: str | Path, window: int, stride: int, field: str = FIELD) -> Segments:
    """A file of texts as a corpus of segments, without probabilities.

    A segment that occurs n times in the texts is a string of the corpus n times. Raises `UserError`
    as `read_texts` does.
    """
    segments, documents, names, texts = [], [], [], []
    for number, row in enumerate(_rows_of_texts(path, field), 1):
        # Each distinct word is kept in memory once.
        words = tuple(sys.intern(word) for word in row.cells[0].split())
        own = windows(words, window, stride)
        segments += own
        documents += [number] * len(own)
        names.append(row.name)
        texts.append(string_id(words))
    return Segments(TextCorpus(str(path), segments), documents, names, texts)


def answered(path: str | Path, response: str = RESPONSE, field: str = FIELD) -> Segments:
    """A file of queries with responses: each distinct query is one segment, which is not cut.

    A query may lack a response. Raises `UserError` as `read_texts` does, and if a response is no
    text. If a query is there with several responses, the first one counts, and a line says so.
    """
    queries, names, texts, responses, n_others = [], [], [], {}, 0
    for row in read_answered(path, response, field):
        query, given = row.cells
        words = tuple(sys.intern(word) for word in query.split())
        queries.append(words)
        names.append(row.name)
        texts.append(string_id(words))
        if given is not None:
            given = " ".join(given.split())
            n_others += responses.setdefault(words, given) != given
    if n_others:
        what = f"{path}: other responses to a query that is there before: {n_others}"
        warnings.warn(Notice(f"{what}; the first response counts"), stacklevel=2)
    documents = list(range(1, 1 + len(queries)))
    return Segments(TextCorpus(str(path), queries), documents, names, texts, responses)


@makes(SEGMENTS)
def of_text(
    corpus: str,
    queries: Sequence[str],
    language: str,
    *,
    query_sets: Sequence[str],
    field: str,
    response: str,
    window: int,
    stride: int,
    neighbours: int,
    k: int,
    m1: int,
    m2: int,
) -> pd.DataFrame:
    """The segments of a text's corpus or, with files of queries, of its queries.

    `corpus` and `queries` are paths, `query_sets` names the sets of queries, and `language` is the
    name of the text. `response` is the field of a response; files
    without this field have none. `neighbours` and the sizes of an approximation (all 0: none)
    change no segment: the corpus must have enough of them.

    Raises `UserError` as `segmented` and `check_text` do, and if no file has the field of
    responses, unless the field has its usual name.
    """
    of_corpus = segmented(corpus, window, stride, field)
    name, sizes = f"density/texts/{language}", {"k": k, "m1": m1, "m2": m2}
    if not query_sets:
        n = len(of_corpus.corpus.strings)
        check_text(f"{name}/corpus", n, neighbours, sizes if k else None)
        say_duplicates(name, of_corpus)
        return tabulated(language, of_corpus)
    sets, n_answered = {}, 0
    for own, path in zip(query_sets, queries, strict=True):
        if response in user_tables.columns_of(path):
            sets[own] = answered(path, response, field)
            n_answered += 1
        else:
            sets[own] = segmented(path, window, stride, field)
    if response != RESPONSE and not n_answered:
        raise UserError(
            f"{', '.join(queries)}: no column {response!r}, which {name}/response names; leave the "
            "key out, or name the column of the responses"
        )
    say_duplicates(name, of_corpus, sets)
    return tabulated(language, sets)


def tabulated(name: str, segments: Segments | Mapping[str, Segments]) -> pd.DataFrame:
    """The table of a corpus or, of several by name, of sets of queries."""
    if isinstance(segments, Segments):
        frame = _rows(CORPUS, segments).assign(query_set=None)
    else:
        parts = [_rows(QUERY, own).assign(query_set=of_set) for of_set, own in segments.items()]
        frame = pd.concat(parts, ignore_index=True)
    return frame.assign(language=name)[SEGMENTS.names].astype({"query_set": "string"})


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
            "response": pd.array([text.responses.get(s) for s in counts], dtype="string"),
            "n_words": [len(segment) for segment in counts],
            "n_characters": [len(words) for words in joined],
            "document": [first[segment] for segment in counts],
            "id": [text.names[first[segment] - 1] for segment in counts],
            "count": list(counts.values()),
        }
    )


def read_texts(path: str | Path, field: str = FIELD) -> Iterator[str]:
    """Yield the texts of a file: a field or column of each row, each line of a .txt file, or files.

    Empty lines are skipped.

    Raises `UserError` if the file cannot be read or has no text, or if a text is missing, null, no
    text, or without words. The message names the line or row, counted from 1.
    """
    for row in _rows_of_texts(path, field):
        yield row.cells[0]


def read_answered(path: str | Path, response: str, field: str = FIELD) -> Iterator[TextRow]:
    """Yield the rows of a file, each with its query and the response to it, which may be None.

    Raises `UserError` as `read_texts` does; a response must be null or a text with words, too.
    """
    for row in _rows_of_texts(path, field, response):
        if row.cells[1] is not None:
            _check(row.where, response, row.cells[1])
        yield row


def _rows_of_texts(path: str | Path, field: str, *more: str) -> Iterator[TextRow]:
    found = False
    for row in user_tables.read_cells(path, TEXTS, field, *more):
        _check(row.where, field, row.cells[0])
        found = True
        yield row
    if not found:
        raise UserError(f"{path}: has no texts; write one text a row, such as {EXAMPLE}")


def _check(where: str, field: str, text: object) -> None:
    """Raise `UserError` unless a value is a text with words that can be written in UTF-8."""
    if not isinstance(text, str):
        what = "null or missing" if text is None else written(text)
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


def say_duplicates(name: str, corpus: Segments, sets: Mapping[str, Segments] | None = None) -> None:
    """Warn of repeated texts, and of words that only look alike; one line for each finding.

    Without sets of queries, only of repeated texts of the corpus.
    """

    def say(what: str) -> None:
        warnings.warn(Notice(f"{name}: {what}"), stacklevel=3)

    known = set(corpus.texts)
    if sets is None:
        if copies := len(corpus.texts) - len(known):
            say(
                f"copies of other texts in the corpus: {copies} of {len(corpus.texts)}; each copy "
                "counts"
            )
        return
    for own, queries in sets.items():
        asked, what = set(queries.texts), QUERIES if own == QUERIES else f"{QUERIES} {own}"
        if copies := len(queries.texts) - len(asked):
            say(
                f"copies of other texts in the {what}: {copies} of {len(queries.texts)}; each text "
                "is asked once"
            )
        if shared := len(asked & known):
            say(
                f"{what} that are also texts of the corpus: {shared} of {len(asked)}; they are at "
                "distance 0 from it"
            )
    words = {*corpus.corpus.alphabet.terminals}.union(
        *(queries.corpus.alphabet.terminals for queries in sets.values())
    )
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
