"""The density of a text's corpus at its queries, from the segments' embeddings.

The vectors of the corpus stay in their table, which is read in batches: memory does not grow with
the corpus.

Source: LMD3: Language Model Data Density Dependence, sections 5.4 and 6.2, algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from palimpsest import tables
from palimpsest.commands import remake
from palimpsest.density.algorithm_1 import (
    combined_parts,
    first_sample,
    read_once,
)
from palimpsest.density.bins import text_bins
from palimpsest.density.densities import APPROXIMATE, Kernels, settings_of
from palimpsest.density.distances import Corpus, checked, checked_block
from palimpsest.density.given_neighbours import read_neighbours
from palimpsest.density.kinds import SEGMENTS, TEXT_DENSITY, TEXT_EMBEDDINGS
from palimpsest.density.neighbours import Index, Neighbours
from palimpsest.density.regressions import regress_text
from palimpsest.density.sizes import IVF, Approximation, check_text
from palimpsest.density.texts import CORPUS, OF_TEXT, QUERY, SEGMENT_ROLES
from palimpsest.errors import UserError
from palimpsest.making import makes

# The columns that `segments` adds to `text_embeddings`
MORE = ["n_characters", "document", "id", "text"]
OF_QUERY = ["query_set", "segment_id"]  # what tells queries apart
# The columns of a query, whatever the setting
ABOUT = [
    *("language", *OF_QUERY, "id", "text", "embedding", "n_characters", "document"),
    *("perplexity", "response_perplexity"),
]
LOSSES = (
    ("perplexity", "nll", "n_tokens"),
    ("response_perplexity", "response_nll", "response_tokens"),
)
BATCH = 4096  # rows of the table that are read at a time
OfRoles = Sequence[str | Path]  # the tables of the corpus and of the queries


class TableCorpus:
    """The corpus of a text, in its table `text_embeddings`; a segment with n copies occurs n times.

    Raises `UserError` if the table is broken, or if vectors have several widths.
    """

    dtype = np.dtype(np.float32)

    def __init__(self, path: str | Path):
        self.path = path
        # This checks the columns of the table, and reads the vector of no row.
        first = tables.read_arrow(path, TEXT_EMBEDDINGS, ["role"], [("role", "=", "none")])
        assert not len(first)
        self.n = self.n_segments = self.width = 0
        for batch in self._batches(["count", "vector"]):
            self.n += int(batch["count"].to_numpy().sum())
            self.n_segments += len(batch)
            for width in np.unique(batch["vector"].combine_chunks().value_lengths()):
                self.width = self.width or int(width)
                if width != self.width:
                    raise UserError(
                        f"{path}: has vectors of {self.width} and of {width} dimensions; "
                        f"{remake(path)}"
                    )

    def blocks(self, size: int) -> Iterator[np.ndarray]:
        start = 0
        for batch in self._batches(["count", "vector"]):
            vectors = vectors_in(batch)
            checked_block(str(self.path), vectors, start)
            start += len(vectors)
            copies = np.repeat(np.arange(len(vectors)), batch["count"].to_numpy())
            for first in range(0, len(copies), size):
                yield vectors[copies[first : first + size]]

    def places(self, names: set[str]) -> dict[str, tuple[int, int]]:
        """The first row of each of these segments, and its copies; without unknown ones."""
        found, row = {}, 0
        for batch in self._batches(["segment_id", "count"]):
            own = zip(batch["segment_id"].to_pylist(), batch["count"].to_pylist(), strict=True)
            for name, count in own:
                if name in names:
                    found[name] = row, count
                row += count
        return found

    def _batches(self, columns: list[str]) -> Iterator[pa.Table]:
        with pq.ParquetFile(self.path) as file:
            for batch in file.iter_batches(BATCH, columns=["role", *columns]):
                table = pa.Table.from_batches([batch])
                rows = table.filter(pa.compute.equal(table["role"], CORPUS))
                if len(rows):
                    yield rows


def vectors_in(table: pa.Table) -> np.ndarray:
    """The column `vector` as float32[rows, D]."""
    vectors = table["vector"].combine_chunks()
    return vectors.flatten().to_numpy().reshape(len(table), -1)


@dataclass(frozen=True)
class EmbeddedText:
    """The embedded segments of a text.

    `queries` has a row for each distinct query of a set, with the columns language, query_set,
    segment_id, id, text, embedding, n_characters, document, and perplexity and
    response_perplexity (NaN without a language model or a response). `query_vectors`
    float32[queries, D] are their embeddings. `corpus` are those of the corpus; a segment with n
    copies occurs n times.
    """

    queries: pd.DataFrame
    query_vectors: np.ndarray
    corpus: Corpus


def read_embedded(segments: OfRoles, embeddings: OfRoles) -> EmbeddedText:
    """Read the tables `segments` and `text_embeddings` of one text.

    Raises `UserError` if a table is broken, or if they are not of the same segments.
    """
    segments, embeddings = (
        dict(zip(SEGMENT_ROLES, each, strict=True)) for each in (segments, embeddings)
    )
    corpus = TableCorpus(embeddings[CORPUS])
    known = tables.read_arrow(segments[CORPUS], SEGMENTS, ["role"])
    own = tables.read_arrow(segments[QUERY], SEGMENTS, [*OF_QUERY, *MORE]).to_pandas()
    rows = tables.read_arrow(embeddings[QUERY], TEXT_EMBEDDINGS)
    queries = rows.drop_columns(["vector"]).to_pandas()
    are_same = {
        CORPUS: len(known) == corpus.n_segments,
        QUERY: queries[OF_QUERY].equals(own[OF_QUERY]),
    }
    for role, is_same in are_same.items():
        if not is_same:
            path = embeddings[role]
            raise UserError(f"{path}: is not of the segments in {segments[role]}; {remake(path)}")
    widths = sorted({corpus.width, *rows["vector"].combine_chunks().value_lengths().to_pylist()})
    if len(widths) > 1:
        raise UserError(
            f"{embeddings[QUERY]}: has vectors of {widths[-1]} dimensions, and the corpus of "
            f"{corpus.width}; {remake(embeddings[QUERY])}"
        )
    queries[MORE] = own[MORE]
    for name, nll, n_tokens in LOSSES:
        queries[name] = np.exp(queries[nll] / queries[n_tokens].astype(float))
    return EmbeddedText(queries, vectors_in(rows), corpus)


@makes(*OF_TEXT)
def of_text(
    segments: OfRoles,
    embeddings: OfRoles,
    language: str,
    *,
    kernels: Kernels,
    neighbours: int,
    approximation: Mapping | None,
    given: str | None = None,
) -> dict[str, pd.DataFrame]:
    """The density of a text's corpus at its queries, and what it says of a model's perplexity.

    `segments` and `embeddings` are the paths of the corpus and of the queries, and `language` is
    the name of the text. `given` is a file of neighbours that another program found. For the other
    arguments, see `text_density`; `approximation` has the sizes by name, and whether the exact
    density is summed as well.
    """
    text = read_embedded(segments, embeddings)
    corpus = f"density/texts/{language}/corpus"
    check_text(corpus, text.corpus.n, neighbours, approximation)
    sizes = approximation and Approximation.of_block(approximation)
    nearest = None
    if given:
        k = max(neighbours, sizes.k if sizes else 0)
        names = text.queries["segment_id"]
        distinct = names.unique()
        nearest = read_neighbours(given, distinct, text.corpus.places, k)
        # A query can be in several sets.
        places = pd.Index(distinct).get_indexer(names)
        nearest = Neighbours(*(part[places] for part in nearest))
    is_exact = approximation is None or approximation.get("exact", False)
    density = text_density(text, kernels, neighbours, sizes, is_exact, nearest)
    tables_of_text = density, text_bins(density), regress_text(density)
    return {kind.name: table for kind, table in zip(OF_TEXT, tables_of_text, strict=True)}


def text_density(
    text: EmbeddedText,
    kernels: Kernels,
    k: int,
    approximation: Approximation | None = None,
    is_exact: bool = True,
    given: Neighbours | None = None,
) -> pd.DataFrame:
    """The table `text_density`: a row for each query, kernel and bandwidth.

    The corpus is read once, for everything.

    Parameters
    ----------
    text : the embedded segments
    kernels : the bandwidths of each kernel, in units of the embedding
    k : number of nearest segments of the corpus, with copies
    approximation : the sizes of algorithm 1; None leaves its columns null
    is_exact : whether the kernel is summed over the whole corpus; otherwise `log_density` is null
    given : neighbours that another program found, at least k and those of the approximation

    Raises `UserError` if the corpus has fewer than k segments, if given neighbours are not those of
    these vectors, or for the reasons in `palimpsest.density.kernel_density`.
    """
    (queries,) = checked(queries=text.query_vectors)
    corpus, settings = text.corpus, settings_of(kernels)
    check_text("the corpus", corpus.n, k, None)
    rows = np.empty(0, dtype=np.int64)
    if approximation is not None:
        approximation.check(corpus.n)
        rows = first_sample(approximation, corpus.n)
    most = max(k, approximation.k if approximation else 0)
    if given is None and approximation is not None and approximation.index == IVF:
        every = np.concatenate([block.copy() for block in corpus.blocks(BATCH)])
        given = Neighbours(*Index(every, IVF, approximation.seed).search(queries, most))
    read = read_once(queries, corpus, rows, most, settings if is_exact else (), given)
    nearest = read.nearest
    about = text.queries[ABOUT].assign(
        k=k,
        nearest=nearest.distances[:, 0],
        mean_distance=nearest.distances[:, :k].mean(axis=1),
        **dict.fromkeys(["log_density", *APPROXIMATE, "local_share"], np.nan),
    )
    parts = [None] * len(settings)
    if approximation is not None:
        own = Neighbours(*(part[:, : approximation.k] for part in nearest))
        parts = combined_parts(queries, corpus.n, settings, approximation, own, rows, read.sample)
    frames = []
    for place, (kernel, bandwidth) in enumerate(settings):
        found = about.assign(kernel=kernel, bandwidth=bandwidth)
        if is_exact:
            found["log_density"] = read.log_densities[place]
        if parts[place] is not None:
            found[list(APPROXIMATE)] = np.column_stack(parts[place])
            log_share = np.log(approximation.k / corpus.n)
            found["local_share"] = np.exp(log_share + found["log_local"] - found["log_approximate"])
        frames.append(found)
    return pd.concat(frames, ignore_index=True)[TEXT_DENSITY.names]
