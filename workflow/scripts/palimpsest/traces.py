"""Traces as arrays. A trace says how well a run predicts every string at every epoch."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from palimpsest import tables
from palimpsest.commands import remake
from palimpsest.errors import UserError
from palimpsest.tables.trace import TRACE

RUN_KEYS = ["model", "language", "size", "seed", "variant"]


@dataclass(frozen=True)
class Trace:
    """How well one run predicts every string at every epoch.

    `run` holds the columns model, language, size, seed and variant; `epochs` int[epochs];
    `string_ids` str[strings]; `n_tokens` int[strings]; `nll` float[epochs, strings] in nats;
    `n_correct` and `rank_sum` int[epochs, strings].
    """

    run: dict
    epochs: np.ndarray
    string_ids: np.ndarray
    n_tokens: np.ndarray
    nll: np.ndarray
    n_correct: np.ndarray
    rank_sum: np.ndarray

    @property
    def loss(self) -> np.ndarray:
        """float[epochs, strings], nats per predicted token."""
        return self.nll / self.n_tokens

    @property
    def accuracy(self) -> np.ndarray:
        """float[epochs, strings], share of tokens whose most probable prediction is right."""
        return self.n_correct / self.n_tokens

    def column_of(self, string_ids: pd.Series | np.ndarray) -> np.ndarray:
        """Positions int[n] of the given strings in the trace; KeyError if one is missing."""
        position = pd.Index(self.string_ids).get_indexer(string_ids)
        if (position < 0).any():
            raise KeyError(f"not in the trace: {np.asarray(string_ids)[position < 0][0]}")
        return position


def to_frame(trace: Trace) -> pd.DataFrame:
    """The trace as a table of kind `trace`, sorted by epoch, with strings in the trace's order."""
    n_epochs, n_strings = trace.nll.shape
    return pd.DataFrame(
        {
            **trace.run,
            "epoch": np.repeat(trace.epochs, n_strings),
            "string_id": np.tile(trace.string_ids, n_epochs),
            "nll": trace.nll.ravel(),
            "n_tokens": np.tile(trace.n_tokens, n_epochs),
            "n_correct": trace.n_correct.ravel(),
            "rank_sum": trace.rank_sum.ravel(),
        }
    )


def read(path: str | Path) -> Trace:
    """Read the trace of one run; UserError if the file holds the traces of several runs."""
    runs = read_all(path)
    if len(runs) != 1:
        raise UserError(
            f"{path}: holds the traces of {len(runs)} runs and not of one; {remake(path)}"
        )
    return runs[0]


def read_all(path: str | Path) -> list[Trace]:
    """Read the traces of all runs in a file, in the file's order."""
    frame = tables.read(path, TRACE)
    keys = frame[RUN_KEYS]
    first = np.flatnonzero((keys != keys.shift()).any(axis=1))
    ends = np.append(first, len(frame))[1:]
    return [_of_run(frame.iloc[begin:end]) for begin, end in zip(first, ends, strict=True)]


def _of_run(frame: pd.DataFrame) -> Trace:
    epochs = np.unique(frame["epoch"].to_numpy())
    shape = (len(epochs), -1)
    first = frame.iloc[: len(frame) // len(epochs)]
    return Trace(
        run=frame[RUN_KEYS].iloc[0].to_dict(),
        epochs=epochs,
        string_ids=first["string_id"].to_numpy(dtype=object),
        n_tokens=first["n_tokens"].to_numpy(),
        nll=frame["nll"].to_numpy().reshape(shape),
        n_correct=frame["n_correct"].to_numpy().reshape(shape),
        rank_sum=frame["rank_sum"].to_numpy().reshape(shape),
    )
