"""MAGIC: influence by the exact derivative of a whole training, through all of its steps.

The loss of a string after training is a function of the weight of each training string in every
step: 1 as trained, 0 without the string. The derivative is taken forwards: beside the weights and
the moments of AdamW, the training carries how they change with the weight of each string. One such
training gives the effects of all strings on all others, at each epoch; it costs about three
trainings for each string. The source takes it backwards, which costs a few trainings for each
string whose loss is asked for.

The derivative says what a small change of a weight does. A removal is a large one: where a training
is not smooth, the derivative says little of it. Rounding drives a long training apart from the one
whose weights were kept; the derivative is then that of a neighbouring training.

Source: Ilyas and Engstrom, MAGIC: Near-Optimal Data Attribution for Deep Learning (2025),
sections 2 and 3.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import torch
from torch.func import functional_call, grad, jvp, vmap

from palimpsest.errors import UserError
from palimpsest.training.batches import IGNORED, TokenisedStrings
from palimpsest.training.recipe import ADAM_BETAS, ADAM_EPS, Recipe

if TYPE_CHECKING:
    from transformers import PreTrainedModel

AT_ONCE = 64  # strings whose derivatives are carried together
# Of the way of the weights from where they began: what is said, and what is refused
NOTED_DRIFT, LARGEST_DRIFT = 0.01, 0.1


@dataclass(frozen=True)
class Unrolled:
    """What the loss of strings rises by without a training string, to first order.

    In nats per token, all copies left out: `self_influence` float64[epochs, measured], at each kept
    epoch, and `influence` float64[train, measured], after the last. A string that is not trained on
    has no self-influence: 0.
    """

    self_influence: np.ndarray
    influence: np.ndarray


class Training:
    """A training whose weights are one vector, and whose strings have weights of their own.

    Parameters
    ----------
    model : a twin with any weights, in the precision of the computation
    encoded : the strings
    recipe : of the training
    steps : optimiser steps of all epochs
    """

    def __init__(
        self, model: PreTrainedModel, encoded: TokenisedStrings, recipe: Recipe, steps: int
    ):
        model.config._attn_implementation = "eager"
        self._model, self._encoded, self._recipe, self._steps = model.eval(), encoded, recipe, steps
        self._shapes = {name: weight.shape for name, weight in model.named_parameters()}
        first = next(model.parameters())
        self.dtype, self.device = first.dtype, first.device

    def flat(self, weights: Mapping[str, torch.Tensor]) -> torch.Tensor:
        """float[P]: the weights one after another."""
        parts = [weights[name].flatten() for name in self._shapes]
        return torch.cat(parts).to(self.device, self.dtype)

    def nll(self, theta_P: torch.Tensor, rows: np.ndarray) -> torch.Tensor:
        """float[rows]: the summed nll of the predicted tokens of strings, in nats."""
        # Padding follows a string and attention is causal, so padding needs no mask.
        length = int(self._encoded.lengths[rows].max())
        ids_BT = torch.from_numpy(self._encoded.ids[rows, : length - 1]).to(self.device)
        targets_BT = torch.from_numpy(self._encoded.targets[rows, 1:length]).to(self.device)
        positions_1T = torch.arange(length - 1, device=self.device)[None]
        logits_BTV = functional_call(
            self._model,
            self._views(theta_P),
            (),
            {"input_ids": ids_BT, "position_ids": positions_1T, "use_cache": False},
        ).logits
        nll_N = torch.nn.functional.cross_entropy(
            logits_BTV.flatten(0, 1), targets_BT.flatten(), ignore_index=IGNORED, reduction="none"
        )
        return nll_N.view(targets_BT.shape).sum(1)

    def losses(self, theta_P: torch.Tensor, rows: np.ndarray) -> torch.Tensor:
        """float[rows]: nats per token."""
        return self.nll(theta_P, rows) / self._tokens(rows)

    def step(self, rows: np.ndarray, number: int) -> Callable:
        """One step of AdamW on the strings in some rows; `number` counts steps from 0.

        A function of the weights, both moments float[P], and the weights of strings
        float[strings]: it returns the next weights and moments.
        """
        recipe, (beta1, beta2) = self._recipe, ADAM_BETAS
        rate = recipe.learning_rate_at(number, self._steps)
        n_tokens, index = self._tokens(rows), torch.from_numpy(rows).to(self.device)

        def loss(theta_P, weights_S):
            own = weights_S[index]
            return (own * self.nll(theta_P, rows)).sum() / (own * n_tokens).sum()

        def next_state(theta_P, first_P, second_P, weights_S):
            grad_P = grad(loss)(theta_P, weights_S)
            length = recipe.gradient_clipping / (grad_P.square().sum().sqrt() + 1e-6)
            grad_P = grad_P * length.clamp(max=1.0)
            first_P = beta1 * first_P + (1 - beta1) * grad_P
            second_P = beta2 * second_P + (1 - beta2) * grad_P.square()
            # The root has no derivative at 0, where a weight has had no gradient at all.
            is_moved = second_P > 0
            root_P = torch.where(is_moved, second_P, 1.0).sqrt() * is_moved
            scale, pace = (1 - beta ** (number + 1) for beta in (beta2, beta1))
            change_P = first_P / pace / (root_P / scale**0.5 + ADAM_EPS)
            return theta_P * (1 - rate * recipe.weight_decay) - rate * change_P, first_P, second_P

        return next_state

    def _tokens(self, rows: np.ndarray) -> torch.Tensor:
        return torch.from_numpy(self._encoded.n_tokens[rows]).to(self.device)

    def _views(self, theta_P: torch.Tensor) -> dict[str, torch.Tensor]:
        parts = theta_P.split([shape.numel() for shape in self._shapes.values()])
        shapes = self._shapes.items()
        return {name: part.view(shape) for part, (name, shape) in zip(parts, shapes, strict=True)}


def unrolled(
    training: Training,
    orders: Sequence[np.ndarray],
    batch_size: int,
    kept: Mapping[int, torch.Tensor],
    train: np.ndarray,
    measured: np.ndarray,
    n_strings: int,
) -> Unrolled:
    """The derivatives of a training with regard to each training string.

    Parameters
    ----------
    training : what a step does
    orders : rows int[n] of each epoch, in the order of the training
    batch_size : strings of a step
    kept : the weights float[P] after each kept epoch, ascending from epoch 0
    train : rows of the training strings
    measured : rows of strings whose loss changes, all training strings among them
    n_strings : of the dataset

    Raises `UserError` if the steps do not lead to the kept weights.
    """
    n, dtype, device = len(train), training.dtype, training.device
    start_P = kept[0]
    state = (start_P, torch.zeros_like(start_P), torch.zeros_like(start_P))
    along = tuple(torch.zeros(n, len(start_P), dtype=dtype, device=device) for _ in state)
    ones_S = torch.ones(n_strings, dtype=dtype, device=device)
    each_NS = torch.zeros(n, n_strings, dtype=dtype, device=device)
    each_NS[torch.arange(n), torch.from_numpy(train).to(device)] = 1
    places = pd.Index(measured).get_indexer(train)
    own, number = [], 0
    for epoch in range(len(orders) + 1):
        rows_of_epoch = orders[epoch - 1] if epoch else np.empty(0, dtype=int)
        for begin in range(0, len(rows_of_epoch), batch_size):
            step = training.step(rows_of_epoch[begin : begin + batch_size], number)
            along = _carried(step, (*state, ones_S), (*along, each_NS))
            state = tuple(part.detach() for part in step(*state, ones_S))
            number += 1
        if epoch in kept:
            _check(state[0], kept[epoch], start_P, epoch)
            (changes,) = _carried(
                lambda theta_P: (training.losses(theta_P, measured),), state[:1], along[:1]
            )
            effects = -changes.double().cpu().numpy()
            of_itself = np.zeros(len(measured))
            of_itself[places] = effects[np.arange(n), places]
            own.append(of_itself)
    return Unrolled(np.stack(own), effects)


def _carried(function: Callable, at: tuple, along: tuple) -> tuple[torch.Tensor, ...]:
    """The derivatives [N, ...] of a function's results, along N directions of its arguments."""

    def of_one(*direction):
        return jvp(function, at, direction)[1]

    return tuple(part.detach() for part in vmap(of_one, chunk_size=AT_ONCE)(*along))


def _check(theta_P: torch.Tensor, kept_P: torch.Tensor, start_P: torch.Tensor, epoch: int) -> None:
    """Raise `UserError` unless the weights are near the kept ones; rounding drives them apart."""
    drift, way = (theta_P - kept_P).norm(), (kept_P - start_P).norm()
    if not drift <= LARGEST_DRIFT * way:  # NaN is no small drift
        raise UserError(
            f"after epoch {epoch}, the unrolled training is {float(drift / way):.0%} of the way of "
            "its weights from the weights that were kept; take magic out of atlas/gradients, or "
            "lower the learning rate"
        )
    if drift > NOTED_DRIFT * way:
        warnings.warn(
            f"after epoch {epoch}, rounding has led the unrolled training {float(drift / way):.1%} "
            "of the way of its weights from the weights that were kept",
            stacklevel=2,
        )
