"""Predictions of models, and scores that need every token of them, as arrays."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from palimpsest.commands import remake
from palimpsest.errors import UserError

VALUES = ["nll", "n_correct", "rank_sum"]  # the values that differ between models
Key = tuple[int, int]


@dataclass(frozen=True)
class TokenScores:
    """Scores that need every token's prediction; see `palimpsest.unlearning.evaluate.token_scores`.

    `min_k` and `min_k_plus` are float[models, strings]; `n_last_correct` is int[models, strings].
    """

    min_k: np.ndarray
    min_k_plus: np.ndarray
    n_last_correct: np.ndarray

    def at(self, chosen: np.ndarray | tuple) -> "TokenScores":
        """The models, or the models and strings, at an index of [models, strings]."""
        return TokenScores(*(getattr(self, name)[chosen] for name in TOKEN_SCORES))


TOKEN_SCORES = ["min_k", "min_k_plus", "n_last_correct"]


@dataclass(frozen=True)
class Predictions:
    """How well some models predict some strings.

    `problem` holds model, language, size and seed; `what` names the kind of the models. `files`
    maps the key of a model to its file. The key of an unlearned model is (origin, replicate); the
    key of a trained model is (replicate, 0). `string_ids` is str[strings] and `n_tokens` is
    int[strings]. `nll` is float[models, strings] in nats; `n_correct` and `rank_sum` are
    int[models, strings]. Models are in the order of `files`. If traces are read with all epochs,
    the arrays are [models, epochs, strings]. `epochs` is int[epochs], and None for unlearned
    models. `tokens` is None for traces, which do not have these scores, and for tables that are
    read without them.
    """

    problem: dict
    what: str
    files: dict[Key, str]
    epochs: np.ndarray | None
    string_ids: np.ndarray
    n_tokens: np.ndarray
    nll: np.ndarray
    n_correct: np.ndarray
    rank_sum: np.ndarray
    tokens: TokenScores | None = None

    @property
    def loss(self) -> np.ndarray:
        """float[models, ..., strings], nats per predicted token."""
        return self.nll / self.n_tokens

    @property
    def extracted(self) -> np.ndarray:
        """bool[models, ..., strings]: whether every token's most probable prediction is right."""
        return self.n_correct == self.n_tokens

    def accuracy(self, copies: np.ndarray) -> np.ndarray:
        """Share float[models] of right tokens, over `copies` int[strings] copies of each string."""
        return self.n_correct @ copies / (self.n_tokens @ copies)

    def probability(self, copies: np.ndarray) -> np.ndarray:
        """Mean probability float[models] of the strings, over `copies` int[strings] of each.

        The probability of a string is the geometric mean of its tokens' probabilities,
        exp(-nll / n_tokens), so that long strings count as much as short ones.

        Source: Maini et al., TOFU (2024), the metric Probability: P(answer)^(1 / number of tokens).
        """
        return np.exp(-self.loss) @ copies / copies.sum()

    def rows(
        self, origins: np.ndarray, unlearning_replicates: np.ndarray | None = None
    ) -> np.ndarray:
        """Indices int[n] of the models with these origins and replicates (replicate 0 if not
        given).

        A model may occur more than once. Raises `UserError` if a model is missing.
        """
        unlearning_replicates = (
            np.zeros_like(origins) if unlearning_replicates is None else unlearning_replicates
        )
        keys = [(int(o), int(d)) for o, d in zip(origins, unlearning_replicates, strict=True)]
        absent = next((key for key in keys if key not in self._places), None)
        if absent is not None:
            raise UserError(self._lack(absent))
        return np.array([self._places[key] for key in keys])

    def of(
        self, origins: np.ndarray, unlearning_replicates: np.ndarray | None = None
    ) -> "Predictions":
        """The models of `rows`, in the same order; the result has no keys of models."""
        rows = self.rows(origins, unlearning_replicates)
        values = {name: getattr(self, name)[rows] for name in VALUES}
        return replace(self, files={}, tokens=self.tokens and self.tokens.at(rows), **values)

    def restricted(self, chosen: np.ndarray) -> "Predictions":
        """Only the strings at the indices, or in the mask, `chosen`."""
        return replace(
            self,
            string_ids=self.string_ids[chosen],
            n_tokens=self.n_tokens[chosen],
            nll=self.nll[..., chosen],
            n_correct=self.n_correct[..., chosen],
            rank_sum=self.rank_sum[..., chosen],
            tokens=self.tokens and self.tokens.at((..., chosen)),
        )

    @cached_property
    def _places(self) -> dict[Key, int]:
        return {key: place for place, key in enumerate(self.files)}

    def _lack(self, key: Key) -> str:
        """A message on a missing model; it names the file that should hold the model.

        This is the file of the nearest model before the missing one.
        """
        before = [known for known in sorted(self.files) if known < key] or sorted(self.files)[:1]
        path = self.files[before[-1]]
        which = (
            f"replicate {key[0]}"
            if self.epochs is not None
            else f"origin {key[0]}, replicate {key[1]}"
        )
        return (
            f"{path}: the {self.what} model with {which} is missing; it was made for another "
            f"configuration: {remake(path)}"
        )
