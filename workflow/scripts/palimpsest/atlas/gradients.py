"""TracIn: the influence of training strings, by products of gradients at the kept epochs.

A score is in nats per token: by how much plain gradient descent on all copies of one string, at the
rates of the training, lowers the loss of the other. This is what the loss rises by, to first order,
if the string is left out. How a string weighs in a step of training: `influence.Weighing`. The loss
of a string that is measured is, as everywhere, its mean nll per token.

Source: Pruthi et al., Estimating Training Data Influence by Tracing Gradient Descent (2020),
section 3.2 (TracInCP).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch

from palimpsest.atlas.influence import Influence, Weighing
from palimpsest.training.recipe import ADAM_BETAS, ADAM_EPS, Recipe

if TYPE_CHECKING:
    from palimpsest.atlas.string_gradients import StringGradients

PLAIN, ADAMW, COSINE = "tracin", "tracin by adamw", "gradient cosine"


@dataclass(frozen=True)
class TracIn:
    """Scores of the measured strings at every epoch, and of pairs of strings after the last.

    `gradient_norm` float64[epochs, measured] is the norm of the gradient of a string's loss after
    each epoch, in nats per token and unit of the weights. `self_influence` float64[epochs,
    measured] is the sum up to each epoch, and `influence` float64[train, measured] the sum over all
    epochs; both by the name of the variant, in nats per token. Only `gradient cosine` has no unit;
    it has no self-influence, which would be 1.
    """

    gradient_norm: np.ndarray
    self_influence: dict[str, np.ndarray]
    influence: dict[str, np.ndarray]


def rates_between(recipe: Recipe, steps: int, epochs: Sequence[int]) -> np.ndarray:
    """Learning rates float64[epochs] that belong to the weights after some epochs.

    A rate is the sum, over the epochs since the kept ones before, of the mean rate of an epoch's
    steps: as in the source, training between two kept epochs is taken to follow the gradients at
    the later one. Nothing is trained before epoch 0, so its rate is 0.
    """
    total = recipe.epochs * steps
    by_step = [recipe.learning_rate_at(step, total) for step in range(total)]
    until = np.concatenate([[0.0], np.reshape(by_step, (-1, steps)).mean(axis=1).cumsum()])
    return np.diff(until[list(epochs)], prepend=0.0)


def tracin(
    gradients: StringGradients,
    checkpoints: Iterable[Mapping[str, torch.Tensor]],
    epochs: Sequence[int],
    rates: np.ndarray,
    weighing: Weighing,
    measured: np.ndarray,
) -> TracIn:
    """Products of the gradients of strings, summed over epochs.

    The variant `tracin by adamw` divides gradients by the root of the optimiser's second moments,
    as AdamW does. Runs do not keep these, so they are estimated: see `SecondMoments`. The variant
    `gradient cosine` is the mean over epochs, weighted by their rates, of the cosine of two
    gradients.

    The gradients of all training strings are in memory at one epoch at a time, and those of other
    strings in batches.

    Parameters
    ----------
    gradients : of the strings, at any weights
    checkpoints : the weights after each epoch
    epochs : the numbers of the epochs, ascending
    rates : float64[epochs], from `rates_between`
    weighing : how training weighs the strings
    measured : rows of strings whose loss changes; they need not be trained on

    Source of the division by second moments: Xia et al., LESS: Selecting Influential Data for
    Targeted Instruction Tuning (2024), section 3.1.
    """
    train, rows = weighing.train, weighing.with_train(measured)
    moments, n = SecondMoments(weighing), len(train)
    norms, plain, by_adamw = np.zeros((3, len(rates), len(rows)))
    cross = {name: np.zeros((n, len(rows))) for name in (PLAIN, ADAMW, COSINE)}
    for place, (weights, epoch, rate) in enumerate(zip(checkpoints, epochs, rates, strict=True)):
        gradients.load(weights)
        train_NP = gradients.of(train)
        scale_P, shrink = moments.after(epoch, train_NP)
        scaled_NP = train_NP * scale_P
        for some, grad_BP in _parts(train_NP, gradients, rows):
            scaled_BP = scaled_NP if grad_BP is train_NP else grad_BP * scale_P
            norms[place, some] = np.sqrt(_row_products(grad_BP, grad_BP))
            plain[place, some] = rate * norms[place, some] ** 2
            by_adamw[place, some] = rate * shrink * _row_products(scaled_BP, grad_BP)
            products = _products(train_NP, grad_BP)
            lengths = np.outer(norms[place, :n], norms[place, some])
            cross[PLAIN][:, some] += rate * products
            cross[ADAMW][:, some] += rate * shrink * _products(scaled_NP, grad_BP)
            cross[COSINE][:, some] += rate * products / np.where(lengths, lengths, np.inf)
    places = pd.Index(rows).get_indexer(measured)
    found = {
        name: Influence.of_products(
            own.cumsum(axis=0) / weighing.tokens_of_a_step,
            cross[name] / weighing.tokens_of_a_step,
            weighing,
            rows,
            measured,
        )
        for name, own in ((PLAIN, plain), (ADAMW, by_adamw))
    }
    return TracIn(
        (norms / weighing.n_tokens[rows])[:, places],
        {name: of_variant.self_influence for name, of_variant in found.items()},
        {name: of_variant.influence for name, of_variant in found.items()}
        | {COSINE: cross[COSINE][:, places] / rates.sum()},
    )


class SecondMoments:
    """An estimate of AdamW's second moments after each epoch, from gradients of single strings.

    A step takes its strings at random and without replacement, so the mean of the square of its
    gradient follows from the mean and the variance over strings. The steps since the epoch before
    count with this mean square, at the weights after the epoch. Gradients are clipped as in
    training, by the root of the mean square of a step's norm.
    """

    def __init__(self, weighing: Weighing):
        self._weighing, self._epoch = weighing, 0
        self._second_P: torch.Tensor | float = 0.0

    def after(self, epoch: int, train_NP: torch.Tensor) -> tuple[torch.Tensor, float]:
        """What AdamW multiplies gradients with, float32[P], and the factor by which it clips them.

        `train_NP` are the gradients of the summed nll of the training strings after this epoch.
        Epochs ascend. After epoch 0 nothing is trained, so the factors are those of a first step.
        """
        square_P = self._mean_square(train_NP)
        shrink = min(1.0, self._weighing.clipping / (float(square_P.sum()) ** 0.5 + 1e-6))
        square_P = square_P * shrink**2
        steps, beta = self._weighing.steps, ADAM_BETAS[1]
        if not epoch:
            return 1 / (square_P.sqrt() + ADAM_EPS), shrink
        kept = beta ** (steps * (epoch - self._epoch))
        self._second_P = kept * self._second_P + (1 - kept) * square_P
        self._epoch = epoch
        corrected_P = self._second_P / (1 - beta ** (steps * epoch))
        return 1 / (corrected_P.sqrt() + ADAM_EPS), shrink

    def _mean_square(self, train_NP: torch.Tensor) -> torch.Tensor:
        """Mean float32[P] of the square of a step's gradient, over the steps of an epoch."""
        weighing = self._weighing
        copies = weighing.copies[weighing.train]
        n, size = copies.sum(), copies.sum() / weighing.steps
        share_N = torch.from_numpy(copies / n).to(train_NP)
        mean_P = share_N @ train_NP
        variance_P = (share_N @ train_NP.square() - mean_P.square()).clamp(min=0)
        # The mean of `size` of n strings, drawn without replacement
        of_mean_P = variance_P / size * ((n - size) / max(1, n - 1))
        return (mean_P.square() + of_mean_P) * (size / weighing.tokens_of_a_step) ** 2


def _parts(
    train_NP: torch.Tensor, gradients: StringGradients, rows: np.ndarray
) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
    """Yield places of strings in `rows`, and their gradients; training strings are the first."""
    n = len(train_NP)
    yield np.arange(n), train_NP
    for places, grad_BP in gradients.batches(rows[n:]):
        yield n + places, grad_BP


def _products(left_NP: torch.Tensor, right_BP: torch.Tensor) -> np.ndarray:
    return (left_NP @ right_BP.T).double().cpu().numpy()


def _row_products(left_BP: torch.Tensor, right_BP: torch.Tensor) -> np.ndarray:
    """float64[B]: the product of each row with the same row of the other."""
    return (left_BP * right_BP).sum(1).double().cpu().numpy()
