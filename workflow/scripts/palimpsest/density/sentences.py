"""What the report's first page says of texts of a user's own: how near the corpus is to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pandas as pd

from palimpsest.density import kinds
from palimpsest.number_format import number, plural
from palimpsest.report.part import Sentence
from palimpsest.report.templates import given, groups

COPY = 1e-3  # a shorter distance is that of a copy, or of a text with the same words
NAMED = 3  # queries that are named
SCALE = {kinds.NGRAMS: "; texts with nothing in common have 1.41", kinds.HIDDEN: ""}


def sentences(tables: Mapping[str, pd.DataFrame]) -> Iterator[Sentence]:
    """A sentence for each corpus and set of queries: how many are in it, and the nearest others.

    None where there is a perplexity, or a study of languages: there, a claim answers.
    """
    density, *answered = given(tables, kinds.TEXT_DENSITY, kinds.TEXT_REGRESSIONS, kinds.LEAKAGE)
    if density.empty or not all(table.empty for table in answered):
        return
    queries = density.drop_duplicates(["language", "query_set", "segment_id"])
    for of_set, own in groups(queries, ["language", "query_set"]):
        yield of_queries(of_set["language"], own.dropna(subset="nearest"))


def of_queries(text: str, queries: pd.DataFrame) -> Sentence:
    embedding = queries["embedding"].iloc[0] if len(queries) else kinds.HIDDEN
    others = queries[queries["nearest"] >= COPY].sort_values("nearest", kind="stable")
    n_copies = len(queries) - len(others)
    words = f"Of {plural(len(queries), 'text')} of {text}, "
    words += f"{n_copies} {'is' if n_copies == 1 else 'are'} in the corpus"
    if len(others):
        near = [f"{row.id} ({number(row.nearest)})" for row in others.head(NAMED).itertuples()]
        words += f"; the nearest others: {', '.join(near)}"
    return Sentence(
        f"{words}.",
        f"In parentheses: the distance to the nearest text of the corpus{SCALE[embedding]}.",
    )
