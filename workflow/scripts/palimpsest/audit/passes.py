"""What one forward pass of a model over some texts says: all that attacks read from it."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.arguments import Made
from palimpsest.lazy_import import lazy_import
from palimpsest.short_repr import ShortRepr

pd = lazy_import("pandas")


@dataclass(frozen=True, repr=False)
class Pass(ShortRepr):
    """What a model says of each predicted token of some texts; the texts stand end to end.

    `n_tokens` int[texts]. The others are float64[tokens], about the distribution of the next token
    in a token's place: `log_prob` of the true token, nats; `mean` and `deviation` of the log
    probability of a token that the model itself draws; `rank` of the true token, 1 for the most
    probable one. `end` is the number of letters of the text up to the token's end, after a prompt.
    """

    n_tokens: np.ndarray
    log_prob: np.ndarray
    mean: np.ndarray
    deviation: np.ndarray
    rank: np.ndarray
    end: np.ndarray

    def split(self, values: np.ndarray) -> list[np.ndarray]:
        """Values of all tokens, float64[tokens], as those of each text."""
        return np.split(values, np.cumsum(self.n_tokens)[:-1])

    @property
    def nll(self) -> np.ndarray:
        """float64[texts]: nats of each text."""
        return -np.add.reduceat(self.log_prob, np.cumsum(self.n_tokens) - self.n_tokens)

    def to_frame(self, id: ArrayLike | None = None) -> pd.DataFrame:
        """A row per token: `id` of its text (by default its number), `place` and all values."""
        names = np.arange(len(self.n_tokens)) if id is None else np.asarray(id)
        places = [np.arange(n) for n in self.n_tokens]
        return pd.DataFrame(
            {
                "id": np.repeat(names, self.n_tokens),
                "place": np.concatenate(places) if places else np.arange(0),
                **self.of_tokens,
            }
        )

    @property
    def of_tokens(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name) for name in OF_TOKENS}


PASS = Made(Pass, "audit.passed(checkpoint, texts)")


OF_TOKENS = tuple(field.name for field in fields(Pass) if field.name != "n_tokens")
