"""Continuations: how a model goes on after the beginning of a text, and how the text does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from palimpsest.allowed import WHOLE
from palimpsest.arguments import Made, Texts, Wholes, takes
from palimpsest.audit.decoding import decoded, end_tokens, text_of
from palimpsest.audit.measuring import AT_ONCE, NO_ENDS, passed_tokens
from palimpsest.errors import UserError
from palimpsest.models.build import TextTokens
from palimpsest.models.checkpoints import CHECKPOINT, Checkpoint
from palimpsest.short_repr import short_repr
from palimpsest.training.batches import TokenisedStrings
from palimpsest.training.texts import encode_records

GREEDY = "greedy decoding up to the tokens"  # what a model is asked about rows of tokens


class Cut(NamedTuple):
    """Texts that are cut into prompt and continuation.

    `rows` int[cut] are their places among all texts; `texts` are whole up to the end of the
    continuation, and `prompts` counts the letters of the prompts.
    """

    rows: np.ndarray
    texts: list[str]
    prompts: list[int]

    __repr__ = short_repr


CUT = Made(Cut, "audit.cut(checkpoint, texts, prompts, ...)")


@takes(
    checkpoint=CHECKPOINT,
    texts=Texts("texts"),
    prompts=Wholes("texts"),
    n_prompt=WHOLE,
    n_continuation=WHOLE,
)
def cut(
    checkpoint: Checkpoint,
    texts: Sequence[str],
    prompts: Sequence[int],
    n_prompt: int,
    n_continuation: int,
) -> Cut:
    """Cut texts by the tokens of a model. Texts that are too short are left out.

    A text with a prompt of its own is cut after it, and its continuation is all the rest.

    Parameters
    ----------
    texts : str[texts], each after its own prompt, if it has one
    prompts : the number of the letters of each text's own prompt, 0 for none
    n_prompt, n_continuation : tokens
    """
    tokens = TextTokens.of(checkpoint.name, checkpoint.tokenizer)
    whole = n_prompt + n_continuation
    found = []
    for row, (text, own, ends) in enumerate(
        zip(texts, prompts, tokens.ends(texts, NO_ENDS), strict=True)
    ):
        if own:
            found.append((row, text, own))
        elif len(ends) >= whole:
            found.append((row, text[: ends[whole - 1]], ends[n_prompt - 1]))
    rows, cut_texts, letters = zip(*found, strict=True) if found else ((), (), ())
    return Cut(np.array(rows, dtype=int), list(cut_texts), list(letters))


def n_tokens_of_longest(checkpoint: Checkpoint, texts: Sequence[str]) -> int:
    """How many tokens of a model the longest of some texts has."""
    tokens = TextTokens.of(checkpoint.name, checkpoint.tokenizer)
    return max(map(len, tokens.ends(texts, NO_ENDS)))


class Continued(NamedTuple):
    """What one model makes of continuations: int[texts] and float64[texts], see the table.

    Greedy decoding ends where the model ends its text, so no later token is right. `generated`
    is None if the tokenizer does not give back the true continuation from its tokens.
    """

    generated: list[str | None]
    n_tokens: np.ndarray
    n_right: np.ndarray
    n_generated: np.ndarray
    nll: np.ndarray

    __repr__ = short_repr

    def to_frame(self, id: ArrayLike | None = None) -> pd.DataFrame:
        """A row per text: `id` (by default its number) and columns of the continuations' table."""
        names = np.arange(len(self.nll)) if id is None else id
        return pd.DataFrame({"id": names, **self._asdict()})


@takes(checkpoint=CHECKPOINT, given=CUT)
def continued(checkpoint: Checkpoint, given: Cut, batch_size: int = AT_ONCE) -> Continued:
    """The continuations of some texts under one model, teacher-forced and by greedy decoding."""
    encoded = encode_records(checkpoint, given.texts, given.prompts)
    found = passed_tokens(checkpoint, given.texts, encoded, given.prompts, batch_size)
    is_right = found.split(found.rank == 1)
    n_generated = np.zeros(len(given.texts), dtype=int)
    generated: list[str | None] = [None] * len(given.texts)
    for row, ids, true in _decoded(checkpoint, encoded, batch_size):
        n_generated[row] = (ids == true).sum()
        letters = given.texts[row][given.prompts[row] :]
        # Some tokenizers leave out a blank where a text begins.
        if checkpoint.tokenizer.decode(true).strip() == letters.strip():
            generated[row] = text_of(checkpoint, ids)
    n_right = np.array([right.sum() for right in is_right])
    return Continued(generated, found.n_tokens, n_right, n_generated, found.nll)


@takes(checkpoint=CHECKPOINT, texts=Texts("texts"), prompt=WHOLE, continuation=WHOLE)
def extractable(
    checkpoint: Checkpoint,
    texts: Sequence[str],
    prompt: int = 32,
    continuation: int = 32,
    batch_size: int = AT_ONCE,
) -> np.ndarray:
    """bool[texts]: whether greedy decoding from a text's first tokens gives all of the next ones.

    Parameters
    ----------
    checkpoint : what `palimpsest.models.checkpoints.opened` returns
    prompt, continuation : tokens of the model

    Raises `UserError` if a text has fewer tokens.
    """
    given = cut(checkpoint, texts, [0] * len(texts), prompt, continuation)
    if len(given.rows) < len(texts):
        short = min({*range(len(texts))} - {*given.rows.tolist()})
        n_tokens = n_tokens_of_longest(checkpoint, [texts[short]])
        raise UserError(
            f"text {short} has fewer than {prompt} + {continuation} tokens of {checkpoint.name}, "
            f"namely {n_tokens}; ask for fewer, or leave it out"
        )
    found = continued(checkpoint, given, batch_size)
    return found.n_generated == found.n_tokens


def _decoded(
    checkpoint: Checkpoint, encoded: TokenisedStrings, batch_size: int
) -> Iterator[tuple[int, np.ndarray, np.ndarray]]:
    """Each text's row, the tokens of its greedy continuation as in `decoded`, and the true ones."""
    contexts = np.broadcast_to(encoded.contexts, encoded.lengths.shape)
    question = f"{GREEDY} {end_tokens(checkpoint)}"
    found = checkpoint.answers.find(question, encoded)
    unknown = np.setdiff1d(np.arange(len(contexts)), list(found))
    for length in np.unique(contexts[unknown]):
        alike = unknown[contexts[unknown] == length]
        for rows in np.array_split(alike, -(-len(alike) // batch_size)):
            n_new = encoded.lengths[rows] - length
            ids = decoded(checkpoint, encoded.ids[rows, :length], int(n_new.max()))
            made = {
                row: of_row[:n] for row, n, of_row in zip(rows.tolist(), n_new, ids, strict=True)
            }
            checkpoint.answers.keep(question, encoded, made)
            found.update(made)
    for row, ids in found.items():
        yield row, ids, encoded.ids[row, contexts[row] : encoded.lengths[row]]
