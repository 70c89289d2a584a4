"""Embeddings of the segments of a text, and a language model's losses on its queries.

Every distinct segment is embedded once, so a query that is also a segment of the corpus has the
same vector, and distance 0. The corpus is embedded once for all sets of queries.

Source: LMD3: Language Model Data Density Dependence, sections 4.1 and 5.4, appendices A.1.2 and
A.2.1.
"""

from __future__ import annotations

import itertools
import logging
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from palimpsest import tables
from palimpsest.corpora.records import before_text
from palimpsest.density.kinds import HIDDEN, NGRAMS, SEGMENTS, TEXT_EMBEDDINGS
from palimpsest.density.texts import check_embedder, name_of_embedding
from palimpsest.density.unknown_tokens import unknown_ids, warn_of_left_out, warn_of_unknown
from palimpsest.density.vectors import LONGEST, of_length_one
from palimpsest.errors import UserError
from palimpsest.jobs.memory import less_next_time
from palimpsest.lazy_import import lazy_import
from palimpsest.training.attempts import Attempts

if TYPE_CHECKING:
    from palimpsest.density.language_model import LanguageModel

torch = lazy_import("torch")  # counting n-grams needs none
log = logging.getLogger("palimpsest")

WIDTH = 2048  # of vectors of n-grams; fewer would move distances more, more would need more memory
SELF_JUDGED = (
    "the embedding is made of hidden states of the model whose perplexity is explained, so density "
    "and perplexity may agree because both are that model's; choose ngrams or all-minilm-l6-v2"
)
AT_ONCE = 4096  # segments of a part

Parts = Callable[[], Iterator[list[str]]]  # the texts, in parts; they can be read several times
Embedder = Callable[[Parts], Iterator[np.ndarray]]


@dataclass(frozen=True)
class TextJob:
    """A text to embed: its segments, how, the language model, and the table to write.

    `segments` are those of the corpus, or of all sets of queries. `corpus` is the table of
    embeddings of the corpus, from which queries take the vectors of equal segments; None for the
    corpus. `embedding` is ngrams, hidden or the folder of a sentence-transformers model. `model` is
    the name of a language model in the table `models`, or None for no losses. `precision` is that
    of the configuration's training.
    """

    name: str
    segments: str
    embeddings: str
    embedding: str
    model: str | None
    models: str
    precision: str
    threads: int = 1
    corpus: str | None = None


def embed_text(job: TextJob, attempts: Attempts) -> None:
    """Embed the segments of a corpus, or of queries, and write their table `text_embeddings`.

    Segments are read, embedded and written in parts, so memory does not grow with the corpus. Only
    queries have losses.

    Raises `UserError` if a model cannot be loaded or takes no text of this length, if an embedding
    has no direction, or if memory is too short for any attempt; `OutOfMemory` if the next attempt
    can succeed.
    """
    tables.read_arrow(job.segments, SEGMENTS, ["role"], [("role", "=", "none")])  # checks it
    passes = attempts.passes()
    with less_next_time(attempts, "deepspeed", passes, lambda: True):
        if job.model is not None or job.embedding != NGRAMS:
            torch.set_num_threads(job.threads)
        model = _language_model(job, passes.evaluation_batch_size)
        embedder = _embedder(job, model, passes.evaluation_batch_size)
        if job.embedding == HIDDEN and job.corpus is not None:
            log.warning("%s: %s", job.name, SELF_JUDGED)
        make = _of_corpus if job.corpus is None else _of_queries
        tables.write_parts(job.embeddings, make(job, model, embedder), TEXT_EMBEDDINGS)
        if model is not None:
            model.close()
    attempts.forget()


def _of_corpus(job: TextJob, _, embedder: Embedder) -> Iterator[pd.DataFrame]:
    """The rows of a corpus, in parts; every segment is there once."""

    def texts() -> Iterator[list[str]]:
        for part in _parts(job.segments):
            yield part["text"].tolist()

    for part, vectors in zip(_parts(job.segments), embedder(texts), strict=True):
        yield _rows(job, part, _of_length_one(vectors, part["text"]))


def _of_queries(
    job: TextJob, model: LanguageModel | None, embedder: Embedder
) -> Iterator[pd.DataFrame]:
    """The rows of all sets of queries, with a language model's losses.

    A query that is also a segment of the corpus has the vector of this segment, and equal queries
    of several sets have the same vector, so that distances of copies are exactly 0.
    """
    queries = pd.concat(_parts(job.segments), ignore_index=True)
    measured = {} if model is None else _measured(model, queries)
    known = _vectors_of(job.corpus, set(queries["segment_id"]))
    distinct = queries.drop_duplicates("segment_id")
    new = distinct[~distinct["segment_id"].isin(list(known))]
    places = range(0, len(new), AT_ONCE)

    def texts() -> Iterator[list[str]]:
        for start in places:
            yield new["text"].iloc[start : start + AT_ONCE].tolist()

    for start, vectors in zip(places, embedder(texts), strict=True):
        part = new.iloc[start : start + AT_ONCE]
        own = _of_length_one(vectors, part["text"])
        known |= dict(zip(part["segment_id"], own, strict=True))
    yield _rows(job, queries, [known[name] for name in queries["segment_id"]], **measured)


def _parts(segments: str) -> Iterator[pd.DataFrame]:
    with pq.ParquetFile(segments) as file:
        for batch in file.iter_batches(AT_ONCE):
            yield batch.to_pandas()


def _vectors_of(embeddings: str, names: set[str]) -> dict[str, np.ndarray]:
    """The vectors of some segments of a corpus, by name, from its table."""
    tables.read_arrow(embeddings, TEXT_EMBEDDINGS, ["role"], [("role", "=", "none")])  # checks it
    found = {}
    with pq.ParquetFile(embeddings) as file:
        for batch in file.iter_batches(AT_ONCE, columns=["segment_id", "vector"]):
            for place, name in enumerate(batch["segment_id"].to_pylist()):
                if name in names:
                    found[name] = batch["vector"][place].values.to_numpy()
    return found


def _of_length_one(vectors: np.ndarray, texts: pd.Series) -> np.ndarray:
    return of_length_one(
        vectors,
        lambda row: f"the embedding of {texts.iloc[row][:60]!r}",
        "delete this text, or choose another embedding",
    ).astype(np.float32)


def _rows(job: TextJob, segments: pd.DataFrame, vectors, **measured) -> pd.DataFrame:
    """Rows of the table `text_embeddings`; columns that are not measured are null."""
    missing = pd.array([pd.NA] * len(segments), dtype="Int64")
    unmeasured = {
        **dict.fromkeys(("n_tokens", "n_unknown", "response_tokens"), missing),
        **dict.fromkeys(("nll", "response_nll"), np.nan),
    }
    return segments.assign(
        embedding=name_of_embedding(job.embedding),
        vector=list(vectors),
        **{**unmeasured, **measured},
    )[TEXT_EMBEDDINGS.names]


def _measured(model: LanguageModel, queries: pd.DataFrame) -> dict:
    """Losses of queries, and of responses given their queries, by column."""
    n_tokens, n_unknown, nll = model.measure(queries["text"].tolist())
    found = {"n_tokens": n_tokens, "n_unknown": n_unknown, "nll": nll}
    has_response = queries["response"].notna().to_numpy()
    if not has_response.any():
        return found
    answered = queries[has_response]
    before = [before_text(text) for text in answered["text"]]
    whole = [prompt + text for prompt, text in zip(before, answered["response"], strict=True)]
    n_tokens, _, nll = model.measure(whole, list(map(len, before)), "responses")
    places = np.flatnonzero(has_response)
    responses = pd.Series(pd.NA, range(len(queries)), dtype="Int64")
    responses.iloc[places] = n_tokens
    losses = np.full(len(queries), np.nan)
    losses[places] = nll
    return found | {"response_tokens": responses.array, "response_nll": losses}


def _language_model(job: TextJob, batch_size: int) -> LanguageModel | None:
    if job.model is None:
        return None
    # Imported here, because it imports torch and transformers.
    from palimpsest.density.language_model import LanguageModel

    return LanguageModel(job.model, job.models, job.precision, batch_size)


def _embedder(job: TextJob, model: LanguageModel | None, batch_size: int) -> Embedder:
    """What gives vectors float[texts, D] of any length for each part of texts."""
    if job.embedding == NGRAMS:
        return lambda texts: map(hashed_ngrams, texts())
    if job.embedding == HIDDEN:
        return model.mean_hidden
    return partial(of_sentences, job.embedding, batch_size)


def hashed_ngrams(texts: list[str]) -> np.ndarray:
    """Counts float32[texts, WIDTH] of one to three words in a row, of length 1.

    An n-gram is hashed to one of `WIDTH` places and to a sign, so the memory does not grow with the
    vocabulary, and vectors of other calls can be compared. Squared distances are kept on average,
    with a relative error of about sqrt(2 / WIDTH): 3 %.

    Source: Weinberger et al., Feature Hashing for Large Scale Multitask Learning (2009).
    """
    from sklearn.feature_extraction.text import HashingVectorizer

    counted = HashingVectorizer(
        tokenizer=str.split,
        token_pattern=None,
        lowercase=False,
        ngram_range=(1, LONGEST),
        n_features=WIDTH,
        norm="l2",
        dtype=np.float32,
    )
    return counted.transform(texts).toarray()


def of_sentences(folder: str, batch_size: int, texts: Parts) -> Iterator[np.ndarray]:
    """The vectors float32[texts, D] that a sentence-transformers model gives, for each part.

    Nothing is fetched, and no code of the folder is run. Texts beyond the model's longest input are
    cut there, with a warning; unknown tokens have a warning, too.

    Raises `UserError` if the folder is not that of such a model, see `check_embedder`, or cannot be
    loaded.
    """
    check_embedder(folder)
    from sentence_transformers import SentenceTransformer

    try:
        model = SentenceTransformer(
            folder,
            device="cuda" if torch.cuda.is_available() else "cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
    except (OSError, ValueError, ImportError, RuntimeError) as error:
        first = str(error).strip().partition("\n")[0]
        raise UserError(
            f"{folder}: cannot be loaded as a sentence-transformers model: {first}; save it again "
            "with: model.save(folder)"
        ) from None
    _warn_of_tokens(model, Path(folder).name, texts)
    for part in texts():
        yield model.encode(part, batch_size=batch_size, show_progress_bar=False)


def _warn_of_tokens(model, name: str, texts: Parts) -> None:
    """Warn of texts that the model cuts, and of tokens that it does not know."""
    longest = model.max_seq_length or math.inf
    n_texts = n_cut = n_tokens = n_unknown = 0
    unknown = unknown_ids(model.tokenizer)
    for part in texts():
        n_texts += len(part)
        found = model.tokenizer(
            part,
            truncation=False,
            verbose=False,
            return_special_tokens_mask=True,
        )
        for ids, special in zip(found["input_ids"], found["special_tokens_mask"], strict=True):
            n_cut += len(ids) > longest
            n_tokens += len(ids) - sum(special)
            n_unknown += sum(map(ids.count, unknown))
    warn_of_unknown(name, n_unknown / max(1, n_tokens), "segments", "embeddings")
    every = itertools.chain.from_iterable(texts())
    warn_of_left_out(name, model.tokenizer, every, "segments", "embeddings")
    if n_cut:
        log.warning(
            "%s takes %d tokens at most: the end of %d of %d segments does not count; a smaller "
            "window would mend this",
            name,
            longest,
            n_cut,
            n_texts,
        )
