"""Losses of single tokens as arrays. Only runs of studies that need them keep them."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from palimpsest import tables
from palimpsest.tables.tokens import TOKENS
from palimpsest.traces import RUN_KEYS


@dataclass(frozen=True)
class TokenLosses:
    """How well one run predicts every token of every string at every epoch.

    `run` holds the columns model, language, size, seed and variant; `epochs` int[epochs];
    `string_ids` str[strings]; `n_tokens` int[strings]; `nll` float[epochs, tokens] in nats, where
    the predicted tokens of all strings stand end to end, in the order of `string_ids`. `ends`
    float[tokens] counts the letters of a text up to the end of each token; NaN for symbols, and for
    the end of a string.
    """

    run: dict
    epochs: np.ndarray
    string_ids: np.ndarray
    n_tokens: np.ndarray
    nll: np.ndarray
    ends: np.ndarray

    def of(self, string_ids: pd.Series | np.ndarray) -> np.ndarray:
        """The columns float[epochs, tokens] of the given strings, end to end in their order.

        KeyError if a string is missing.
        """
        return self.nll[:, self._tokens(string_ids)]

    def ends_of(self, string_ids: pd.Series | np.ndarray) -> np.ndarray:
        """The ends float[tokens] of the tokens of the given strings. KeyError as `of`."""
        return self.ends[self._tokens(string_ids)]

    def _tokens(self, string_ids: pd.Series | np.ndarray) -> np.ndarray:
        """The places int[tokens] of the tokens of the given strings."""
        position = pd.Index(self.string_ids).get_indexer(string_ids)
        if (position < 0).any():
            raise KeyError(f"not in the table: {np.asarray(string_ids)[position < 0][0]}")
        ends = np.cumsum(self.n_tokens)
        starts = ends - self.n_tokens
        columns = [np.arange(starts[place], ends[place]) for place in position]
        return np.concatenate([np.arange(0), *columns])


def to_frame(losses: TokenLosses) -> pd.DataFrame:
    """The losses as a table of kind `tokens`, sorted by epoch, with strings in their order."""
    n_epochs, n_tokens = losses.nll.shape
    places = np.concatenate([np.arange(n) for n in losses.n_tokens])
    return pd.DataFrame(
        {
            **losses.run,
            "epoch": np.repeat(losses.epochs, n_tokens),
            "string_id": np.tile(np.repeat(losses.string_ids, losses.n_tokens), n_epochs),
            "place": np.tile(places, n_epochs),
            "end": np.tile(losses.ends, n_epochs),
            "nll": losses.nll.ravel(),
        }
    )


def read(path: str | Path) -> TokenLosses:
    frame = tables.read(path, TOKENS)
    epochs = np.unique(frame["epoch"].to_numpy())
    first = frame.iloc[: len(frame) // len(epochs)]
    starts = np.flatnonzero(first["place"].to_numpy() == 0)
    return TokenLosses(
        run=frame[RUN_KEYS].iloc[0].to_dict(),
        epochs=epochs,
        string_ids=first["string_id"].to_numpy(dtype=object)[starts],
        n_tokens=np.diff(starts, append=len(first)),
        nll=frame["nll"].to_numpy().reshape(len(epochs), -1),
        ends=first["end"].to_numpy(dtype=float),
    )
