"""Embeddings of the segments of a text, and a language model's losses on its queries.

Every distinct segment is embedded once, so a query that is also a segment of the corpus has the
same vector, and distance 0.

Source: LMD3: Language Model Data Density Dependence, sections 4.1 and 5.4, appendices A.1.2 and
A.2.1.
"""

from __future__ import annotations

import logging
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from palimpsest import tables
from palimpsest.density.kinds import HIDDEN, NGRAMS, SEGMENTS, TEXT_EMBEDDINGS
from palimpsest.density.segments import QUERY
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
AT_ONCE = 1024  # segments that are turned into rows of a table, or into n-grams, at once


@dataclass(frozen=True)
class TextJob:
    """A text to embed: its segments, how, the language model, and the table to write.

    `embedding` is ngrams, hidden or the folder of a sentence-transformers model. `model` is the
    name of a language model in the table `models`, or None for no losses. `precision` is that of
    the configuration's training.
    """

    name: str
    segments: str
    embeddings: str
    embedding: str
    model: str | None
    models: str
    precision: str
    threads: int = 1


def embed_text(job: TextJob, attempts: Attempts) -> None:
    """Embed all segments of a text, and write its table `text_embeddings`.

    Raises `UserError` if a model cannot be loaded or takes no text of this length, if an embedding
    has no direction, or if memory is too short for any attempt; `OutOfMemory` if the next attempt
    can succeed.
    """
    segments = tables.read(job.segments, SEGMENTS)
    distinct = segments.drop_duplicates("segment_id")
    passes = attempts.passes()
    with less_next_time(attempts, "deepspeed", passes, lambda: True):
        if job.model is not None or job.embedding != NGRAMS:
            torch.set_num_threads(job.threads)
        model = _language_model(job, passes.evaluation_batch_size)
        vectors = _vectors(job, model, distinct["text"].tolist(), passes.evaluation_batch_size)
        about = segments.assign(
            embedding=name_of_embedding(job.embedding, job.model),
            n_tokens=pd.array([pd.NA] * len(segments), dtype="Int64"),
            n_unknown=pd.array([pd.NA] * len(segments), dtype="Int64"),
            nll=np.nan,
        )
        if model is not None:
            is_query = (segments["role"] == QUERY).to_numpy()
            measured = model.measure(segments.loc[is_query, "text"].tolist())
            for column, values in zip(("n_tokens", "n_unknown", "nll"), measured, strict=True):
                about.loc[is_query, column] = values
            model.close()
    places = pd.Index(distinct["segment_id"]).get_indexer(segments["segment_id"])
    vectors = of_length_one(
        vectors,
        lambda row: f"the embedding of {distinct['text'].iloc[row][:60]!r}",
        "delete this text, or choose another embedding",
    ).astype(np.float32)
    frames = (
        about.iloc[start : start + AT_ONCE].assign(
            vector=list(vectors[places[start : start + AT_ONCE]])
        )[TEXT_EMBEDDINGS.names]
        for start in range(0, len(segments), AT_ONCE)
    )
    tables.write_parts(job.embeddings, frames, TEXT_EMBEDDINGS)
    attempts.forget()


def _language_model(job: TextJob, batch_size: int) -> LanguageModel | None:
    if job.model is None:
        return None
    # Imported here, because it imports torch and transformers.
    from palimpsest.density.language_model import LanguageModel

    return LanguageModel(job.model, job.models, job.precision, batch_size)


def _vectors(
    job: TextJob, model: LanguageModel | None, texts: list[str], batch_size: int
) -> np.ndarray:
    """Vectors float[texts, D] of any length."""
    if job.embedding == NGRAMS:
        return hashed_ngrams(texts)
    if job.embedding == HIDDEN:
        return model.mean_hidden(texts)
    return of_sentences(job.embedding, texts, batch_size)


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
    vectors = np.empty((len(texts), WIDTH), dtype=np.float32)
    for start in range(0, len(texts), AT_ONCE):
        some = slice(start, start + AT_ONCE)
        vectors[some] = counted.transform(texts[some]).toarray()
    return vectors


def of_sentences(folder: str, texts: list[str], batch_size: int) -> np.ndarray:
    """The vectors float32[texts, D] that a sentence-transformers model in a folder gives.

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
    return model.encode(texts, batch_size=batch_size, show_progress_bar=False)


def _warn_of_tokens(model, name: str, texts: list[str]) -> None:
    """Warn of texts that the model cuts, and of tokens that it does not know."""
    longest = model.max_seq_length or math.inf
    n_cut = n_tokens = n_unknown = 0
    unknown = unknown_ids(model.tokenizer)
    for start in range(0, len(texts), AT_ONCE):
        found = model.tokenizer(
            texts[start : start + AT_ONCE],
            truncation=False,
            verbose=False,
            return_special_tokens_mask=True,
        )
        for ids, special in zip(found["input_ids"], found["special_tokens_mask"], strict=True):
            n_cut += len(ids) > longest
            n_tokens += len(ids) - sum(special)
            n_unknown += sum(map(ids.count, unknown))
    warn_of_unknown(name, n_unknown / max(1, n_tokens), "segments", "embeddings")
    warn_of_left_out(name, model.tokenizer, texts, "segments", "embeddings")
    if n_cut:
        log.warning(
            "%s takes %d tokens at most: the end of %d of %d segments does not count; a smaller "
            "window would mend this",
            name,
            longest,
            n_cut,
            len(texts),
        )
