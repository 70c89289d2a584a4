"""Strings as token ids, and batches of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

from palimpsest.models.build import Tokens

IGNORED = -100


@dataclass(frozen=True)
class TokenisedStrings:
    """The distinct strings of a dataset as token ids.

    A row of `ids` int64[strings, longest] is a start token, the tokens of the string, the end token
    if it is predicted, and padding. `lengths` int64[strings] counts all tokens except padding.
    `contexts` int64[strings], or one number for all, counts the first tokens, which are not
    predicted: the start token, and those of a prompt.
    """

    ids: np.ndarray
    lengths: np.ndarray
    contexts: np.ndarray | int = 1

    @classmethod
    def of_rows(
        cls, rows: Sequence[Sequence[int]], filler: int, prompts: Sequence[int] | int = 0
    ) -> "TokenisedStrings":
        """Rows of ids, each with its start token; shorter ones are padded with `filler`.

        `prompts` are the numbers of tokens of prompts.
        """
        lengths = np.array([len(row) for row in rows])
        ids = np.full((len(rows), lengths.max()), filler, dtype=np.int64)
        for row, values in zip(ids, rows, strict=True):
            row[: len(values)] = values
        return cls(ids, lengths, np.asarray(prompts) + 1)

    @property
    def n_tokens(self) -> np.ndarray:
        """Number of predicted tokens, int64[strings]."""
        return self.lengths - self.contexts

    @cached_property
    def targets(self) -> np.ndarray:
        """int64[strings, longest]: the ids of predicted tokens, and `IGNORED` for all others."""
        places = np.arange(self.ids.shape[1])
        contexts = np.broadcast_to(self.contexts, self.lengths.shape)
        is_predicted = (places >= contexts[:, None]) & (places < self.lengths[:, None])
        return np.where(is_predicted, self.ids, IGNORED)

    def with_more(self, more: "TokenisedStrings") -> "TokenisedStrings":
        """These strings, and after them some more."""
        parts = (self, more)
        longest = max(part.ids.shape[1] for part in parts)
        return TokenisedStrings(
            np.concatenate(
                [np.pad(one.ids, ((0, 0), (0, longest - one.ids.shape[1]))) for one in parts]
            ),
            np.concatenate([one.lengths for one in parts]),
            np.concatenate([np.broadcast_to(one.contexts, one.lengths.shape) for one in parts]),
        )

    def batch(self, rows: np.ndarray, device: torch.device) -> "Batch":
        """The strings in the given rows, padded to the longest; a row of -1 has no string."""
        real = rows >= 0
        picked = np.where(real, rows, rows.max())
        longest = int(self.lengths[picked].max())
        within = np.arange(longest) < self.lengths[picked, None]
        ids = self.ids[picked, :longest]
        targets = np.where(real[:, None], self.targets[picked, :longest], IGNORED)[:, 1:]
        # A mask of ones would only slow attention down, so strings of equal length have no mask.
        mask = None if within.all() else torch.from_numpy(within.astype(np.int64)).to(device)
        return Batch(
            torch.from_numpy(ids[:, :-1].copy()).to(device),
            None if mask is None else mask[:, :-1],
            torch.from_numpy(targets.copy()).to(device),
        )


@dataclass(frozen=True)
class Batch:
    """The model's inputs `ids_BT` and `mask_BT` (None: no padding), and its targets."""

    ids_BT: torch.Tensor
    mask_BT: torch.Tensor | None
    targets_BT: torch.Tensor


def encode(
    texts: Sequence[str],
    tokens: Tokens,
    predict_end: bool,
    prompts: Sequence[int] | None = None,
    what: str = "string",
    filler: int | None = None,
) -> TokenisedStrings:
    """Strings as the tokens of a model, each after a start token. Raises as `tokens.rows`.

    `prompts` are the numbers of the first letters of texts whose tokens are not predicted, and
    `what` is what a string is called in messages. Shorter strings are padded with `filler`, or else
    with the end token.
    """
    tail = [tokens.end] if predict_end else []
    rows = [[tokens.start, *row, *tail] for row in tokens.rows(texts, what)]
    skipped = 0 if prompts is None or not any(prompts) else tokens.prompts(texts, prompts, what)
    padding = tokens.end if filler is None else filler
    return TokenisedStrings.of_rows(rows, padding, skipped)


def micro_batches(
    order: np.ndarray, batch_size: int, micro_batch_size: int, rank: int, processes: int
) -> Iterator[list[np.ndarray]]:
    """Yield, for each optimiser step, the rows of every forward pass of one process.

    `order` int[n] lists the rows of an epoch. All processes make the same number of forward passes
    of the same size, at most `micro_batch_size`, so that their collective operations match. Unused
    positions hold -1.
    """
    passes = -(-batch_size // (micro_batch_size * processes))
    per_pass = -(-batch_size // (passes * processes))
    for first in range(0, len(order), batch_size):
        step = np.full(passes * per_pass * processes, -1)
        rows = order[first : first + batch_size]
        step[: len(rows)] = rows
        yield list(step.reshape(passes, processes, per_pass)[:, rank])


def by_length(
    lengths: np.ndarray, rows: np.ndarray, batch_size: int, processes: int
) -> list[np.ndarray]:
    """Some rows in batches of similar length; the number of batches is a multiple of `processes`.

    To reach this number, some batches may repeat one row; their results equal the existing ones.
    """
    order = rows[np.argsort(lengths[rows], kind="stable")]
    batches = [order[i : i + batch_size] for i in range(0, len(order), batch_size)]
    return batches + [order[:1]] * (-len(batches) % processes)
