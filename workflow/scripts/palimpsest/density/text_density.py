"""The density of a text's corpus at its queries, from the segments' embeddings.

Source: LMD3: Language Model Data Density Dependence, sections 5.4 and 6.2, algorithm 1.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from palimpsest import tables
from palimpsest.commands import remake
from palimpsest.density.bins import text_bins
from palimpsest.density.densities import Kernels, distances, log_densities
from palimpsest.density.kinds import SEGMENTS, TEXT_DENSITY, TEXT_EMBEDDINGS
from palimpsest.density.regressions import regress_text
from palimpsest.density.segments import CORPUS, QUERY
from palimpsest.density.sizes import Approximation, check_text
from palimpsest.density.texts import OF_TEXT
from palimpsest.errors import UserError
from palimpsest.making import makes

# The columns that `segments` adds to `text_embeddings`
MORE = ["n_characters", "document", "count"]


@dataclass(frozen=True)
class EmbeddedText:
    """The embedded segments of a text.

    `queries` has a row for each distinct query, with the columns language, segment_id, embedding,
    n_characters, document and perplexity (NaN without a language model). `query_vectors`
    float32[queries, D] are their embeddings. `corpus_vectors` float32[N, D] are those of the
    corpus; a segment with n copies occurs n times.
    """

    queries: pd.DataFrame
    query_vectors: np.ndarray
    corpus_vectors: np.ndarray


def read_embedded(segments: str | Path, embeddings: str | Path) -> EmbeddedText:
    """Read the tables `segments` and `text_embeddings` of one text.

    Raises `UserError` if a table is broken, or if they are not of the same segments.
    """
    known = tables.read(segments, SEGMENTS)
    found = {}
    for role in (CORPUS, QUERY):
        own = known[known["role"] == role].set_index("segment_id")
        rows = tables.read_arrow(embeddings, TEXT_EMBEDDINGS, filters=[("role", "=", role)])
        vectors = rows["vector"].combine_chunks()
        if len(widths := sorted(set(vectors.value_lengths().to_pylist()))) > 1:
            raise UserError(
                f"{embeddings}: has vectors of {widths[0]} and of {widths[-1]} dimensions; "
                f"{remake(embeddings)}"
            )
        about = rows.drop_columns(["vector"]).to_pandas()
        if sorted(about["segment_id"]) != sorted(own.index):
            raise UserError(
                f"{embeddings}: is not of the segments in {segments}; {remake(embeddings)}"
            )
        known_of_segments = own.loc[about["segment_id"]].reset_index(drop=True)
        about[MORE] = known_of_segments[MORE]
        found[role] = about, vectors.flatten().to_numpy().reshape(len(about), -1)
    corpus, corpus_vectors = found[CORPUS]
    queries, query_vectors = found[QUERY]
    queries["perplexity"] = np.exp(queries["nll"] / queries["n_tokens"])
    return EmbeddedText(queries, query_vectors, np.repeat(corpus_vectors, corpus["count"], axis=0))


@makes(*OF_TEXT)
def of_text(
    segments: str,
    embeddings: str,
    language: str,
    *,
    kernels: Kernels,
    neighbours: int,
    approximation: Mapping | None,
) -> dict[str, pd.DataFrame]:
    """The density of a text's corpus at its queries, and what it says of a model's perplexity.

    `segments` and `embeddings` are paths, and `language` is the name of the text. For the other
    arguments, see `text_density`; `approximation` has the sizes by name.
    """
    text = read_embedded(segments, embeddings)
    corpus = f"density/texts/{language}/corpus"
    check_text(corpus, len(text.corpus_vectors), neighbours, approximation)
    sizes = approximation and Approximation(**approximation)
    density = text_density(text, kernels, neighbours, sizes)
    tables_of_text = density, text_bins(density), regress_text(density)
    return {kind.name: table for kind, table in zip(OF_TEXT, tables_of_text, strict=True)}


def text_density(
    text: EmbeddedText, kernels: Kernels, k: int, approximation: Approximation | None = None
) -> pd.DataFrame:
    """The table `text_density`: a row for each query, kernel and bandwidth.

    Parameters
    ----------
    text : the embedded segments
    kernels : the bandwidths of each kernel, in units of the embedding
    k : number of nearest segments of the corpus, with copies
    approximation : the sizes of algorithm 1; None leaves its columns null

    Raises `UserError` if the corpus has fewer than k segments, or for the reasons in
    `palimpsest.density.kernel_density`.
    """
    queries, corpus = text.query_vectors, text.corpus_vectors
    columns = ["language", "segment_id", "embedding", "n_characters", "document", "perplexity"]
    about = text.queries[columns].assign(**distances(queries, corpus, k))
    parts = [
        about.assign(**found) for found in log_densities(queries, corpus, kernels, approximation)
    ]
    return pd.concat(parts, ignore_index=True)[TEXT_DENSITY.names]
