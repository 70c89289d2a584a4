"""Texts as segments: windows of words, cut by one rule for a corpus and for queries.

A text's words are what is between blanks, tabs and line breaks. The first window begins at the
first word, and each further window begins `stride` words later, until a window reaches the end of
the text. So the last window may be shorter, and a text that is shorter than a window is one
segment. Windows do not reach from one text into the next. Equal texts have equal segments, so a
query that is also a text of the corpus is found at distance 0.

Source: LMD3: Language Model Data Density Dependence, appendices A.1.1, A.1.2 and A.2.5.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from palimpsest.corpora import String, TextCorpus, text_of
from palimpsest.datasets.strings import string_id
from palimpsest.density.kinds import SEGMENTS
from palimpsest.density.texts import JSONL
from palimpsest.errors import UserError, nearest

CORPUS, QUERY = "corpus", "query"
FIELD = "text"
EXAMPLE = '{"text": "some words"}'
AT_ONCE = 1024  # rows of a Parquet file


def windows(words: Sequence[str], window: int, stride: int) -> list[String]:
    """The windows of a text's words, see above; every word is in at least one.

    `window` is at least 1, and `stride` from 1 to `window`.
    """
    last = max(0, len(words) - window)
    starts = range(0, last + stride, stride)
    return [tuple(words[start : start + window]) for start in starts]


class Segments(NamedTuple):
    """The segments of a file of texts, and the text of each one: its number, from 1."""

    corpus: TextCorpus
    documents: list[int]


def segmented(path: str | Path, window: int, stride: int) -> Segments:
    """A file of texts as a corpus of segments, without probabilities.

    A segment that occurs n times in the texts is a string of the corpus n times. Raises `UserError`
    as `read_texts` does.
    """
    segments, documents = [], []
    for number, text in enumerate(read_texts(path), 1):
        # Each distinct word is kept in memory once.
        own = windows([sys.intern(word) for word in text.split()], window, stride)
        segments += own
        documents += [number] * len(own)
    return Segments(TextCorpus(str(path), segments), documents)


def tabulated(name: str, corpus: Segments, queries: Segments) -> pd.DataFrame:
    """The table `segments` of a text: the distinct segments of both, with their copies."""
    parts = [_rows(role, text) for role, text in ((CORPUS, corpus), (QUERY, queries))]
    return pd.concat(parts, ignore_index=True).assign(language=name)[SEGMENTS.names]


def _rows(role: str, text: Segments) -> pd.DataFrame:
    strings = text.corpus.strings
    counts = Counter(strings)
    # From the last to the first, so that the first document stays.
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


def read_texts(path: str | Path) -> Iterator[str]:
    """Yield the texts of a file: the field `text` of each line (JSONL), or the column (Parquet).

    Empty lines of a JSONL file are skipped.

    Raises
    ------
    UserError
        If the file cannot be read or has no text, or if a text is missing, null, no text, or
        without words. The message names the line or row, counted from 1.
    """
    found = False
    rows = _lines(path) if str(path).endswith(JSONL) else _cells(path)
    for where, text in rows:
        _check(where, text)
        found = True
        yield text
    if not found:
        raise UserError(f"{path}: has no texts; write one text a row, such as {EXAMPLE}")


def _check(where: str, text: object) -> None:
    """Raise `UserError` unless a value is a text with words, that can be written in UTF-8."""
    if not isinstance(text, str):
        what = "null" if text is None else f"of type {type(text).__name__}"
        raise UserError(f"{where}: {FIELD!r} is {what}; must be a text: mend or delete the row")
    if not text.strip():
        raise UserError(f"{where}: {FIELD!r} has no words; delete the row")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise UserError(
            f"{where}: {FIELD!r} has half a character (a lone surrogate), which no file in UTF-8 "
            "can hold; mend or delete the row"
        ) from None


def _lines(path: str | Path) -> Iterator[tuple[str, object]]:
    """Yield the value of the field in every line of a JSONL file, and where the line is."""
    try:
        with Path(path).open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    where = f"{path}:{number}"
                    yield where, _value(where, line)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: cannot be read as text in UTF-8: {error}") from None


def _value(where: str, line: str) -> object:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UserError(
            f"{where}: is not JSON ({error}); write one object a line, such as {EXAMPLE}"
        ) from None
    if not isinstance(fields, dict):
        raise UserError(f"{where}: is no JSON object; write one a line, such as {EXAMPLE}")
    if FIELD not in fields:
        raise UserError(f"{where}: {_missing('field', list(fields))}")
    return fields[FIELD]


def _cells(path: str | Path) -> Iterator[tuple[str, object]]:
    """Yield the value of the column in every row of a Parquet file, and where the row is."""
    try:
        file = pq.ParquetFile(path)
        schema = file.schema_arrow
        if FIELD not in schema.names:
            raise UserError(f"{path}: {_missing('column', schema.names)}")
        number = 0
        for batch in file.iter_batches(AT_ONCE, columns=[FIELD]):
            for value in batch.column(0).to_pylist():
                number += 1
                yield f"{path}: row {number}", value
    except (pa.ArrowException, OSError) as error:
        first = str(error).partition("\n")[0]
        raise UserError(f"{path}: cannot be read as Parquet: {first}; save it again") from None


def _missing(what: str, names: Sequence[str]) -> str:
    named = ", ".join(names) or "none"
    return (
        f"has no {what} {FIELD!r}{nearest(FIELD, names)}; it has: {named}; rename the one that "
        f"holds the text to {FIELD!r}"
    )
