"""How a training weighs its strings, and scores of the influence of strings on each other."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Weighing:
    """How the steps of a training weigh its strings.

    A step takes the loss of its strings per token: the sum of their nll, divided by their number
    of tokens. All steps have about equally many tokens, so a string weighs as much as the *sum* of
    the nll of its tokens, in every copy.

    Parameters
    ----------
    copies : int[strings], in the training multiset; 0 for strings that are not trained on
    n_tokens : int[strings], predicted tokens
    steps : optimiser steps of an epoch
    clipping : the largest norm of the gradient of a step
    """

    copies: np.ndarray
    n_tokens: np.ndarray
    steps: int
    clipping: float

    @property
    def train(self) -> np.ndarray:
        """Rows of the training strings."""
        return np.flatnonzero(self.copies > 0)

    @property
    def tokens_of_a_step(self) -> float:
        """Mean number of predicted tokens in a step."""
        return float((self.copies * self.n_tokens).sum() / self.steps)

    def with_train(self, measured: np.ndarray) -> np.ndarray:
        """The rows of all training strings, and after them those of other measured strings."""
        train = self.train
        return np.concatenate([train, np.setdiff1d(measured, train)])

    def copies_as_trained(self, rows: np.ndarray) -> np.ndarray:
        """int[rows]: copies; 1 of a string that is not trained on, as if it were."""
        return np.maximum(self.copies[rows], 1)


@dataclass(frozen=True)
class Influence:
    """What the loss of strings rises by without a training string, in nats per token.

    All copies are left out. `influence` is float64[train, measured], and `self_influence`
    float64[measured] that of a string on itself; of a string that is not trained on, as if there
    were one copy.
    """

    self_influence: np.ndarray
    influence: np.ndarray

    @classmethod
    def of_products(
        cls,
        own: np.ndarray,
        cross: np.ndarray,
        weighing: Weighing,
        rows: np.ndarray,
        measured: np.ndarray,
    ) -> Influence:
        """From products of gradients of the summed nll of strings.

        `own` is float64[..., rows] and `cross` float64[train, rows], in the order of `with_train`.
        """
        copies, per_token = weighing.copies_as_trained(rows), 1 / weighing.n_tokens[rows]
        places = pd.Index(rows).get_indexer(measured)
        whole = cross * np.outer(copies[: len(cross)], per_token)
        return cls((own * copies * per_token)[..., places], whole[:, places])
