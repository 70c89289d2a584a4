"""The gradient of the loss of every single string, of many strings at once.

A stack of models holds one copy of the same model for each string of a batch, so the gradient of a
copy is that of its string. The kernels that train twins compute all of them, and no weight of any
class of models needs a rule of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import torch

from palimpsest.errors import UserError
from palimpsest.training.batches import IGNORED, TokenisedStrings
from palimpsest.training.fleet.stack import Stack

if TYPE_CHECKING:
    from transformers import PreTrainedModel

# Strings whose gradients are computed together: on a CPU their gradients stay in its slow caches.
AT_ONCE_ON_CPU, AT_ONCE = 64, 512


class StringGradients:
    """Gradients of single strings at given weights; P is the number of a model's parameters.

    The loss of a string is the sum of the nll of its predicted tokens, in nats. Strings of equal
    or similar length are computed together; padding follows a string and has no effect.

    Parameters
    ----------
    model : a twin with any weights; it is changed, and cannot be used for anything else
    encoded : the strings
    device : where gradients are computed
    at_once : the most strings of a batch
    """

    def __init__(
        self,
        model: PreTrainedModel,
        encoded: TokenisedStrings,
        device: torch.device,
        at_once: int | None = None,
    ):
        most = at_once or (AT_ONCE_ON_CPU if device.type == "cpu" else AT_ONCE)
        self.at_once = min(most, len(encoded.lengths))
        self._encoded, self.device = encoded, device
        self._whole = {name: weight.shape for name, weight in model.named_parameters()}
        _cut_positions(model, encoded.ids.shape[1])
        self._stack = Stack(model, self.at_once, device)
        self._grad_MP = torch.empty_like(self._stack.theta)
        # Of batches that can be repeated, by the numbers of strings and tokens; and their inputs.
        self._programs: dict[tuple[int, int], tuple] = {}

    @property
    def shapes(self) -> dict[str, torch.Size]:
        """The shapes of the parameters; gradients are in this order, flattened.

        A table of positions has no rows for positions that no string has: their gradients are 0.
        """
        return self._stack.shapes

    @property
    def n_parameters(self) -> int:
        return self._stack.theta.shape[1]

    def load(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Compute at these weights from now on.

        Raises `UserError` if they are not the weights of this model.
        """
        for name, shape in self._whole.items():
            if name not in weights or weights[name].shape != shape:
                raise UserError(f"the weights are of another model: {name!r} does not fit")
        parts = [weights[name][: shape[0]].flatten() for name, shape in self.shapes.items()]
        self._stack.theta[:] = torch.cat(parts).to(self.device)

    def of(self, rows: np.ndarray) -> torch.Tensor:
        """Gradients float32[rows, P] of the strings in some rows, in nats per unit of a weight."""
        found = torch.empty(len(rows), self.n_parameters, device=self.device)
        for places in self._batches(rows):
            found[places] = self._of_batch(rows[places])
        return found

    def batches(self, rows: np.ndarray) -> Iterator[tuple[np.ndarray, torch.Tensor]]:
        """Yield places in `rows` and their gradients, valid until the next batch."""
        for places in self._batches(rows):
            yield places, self._of_batch(rows[places])

    def _batches(self, rows: np.ndarray) -> list[np.ndarray]:
        order = np.argsort(self._encoded.lengths[rows], kind="stable")
        return [order[i : i + self.at_once] for i in range(0, len(order), self.at_once)]

    def _of_batch(self, rows: np.ndarray) -> torch.Tensor:
        """Gradients of at most `at_once` strings, valid until the next batch."""
        length = int(self._encoded.lengths[rows].max())
        ids_MT = torch.from_numpy(self._encoded.ids[rows, : length - 1]).to(self.device)
        targets_MT = torch.from_numpy(self._encoded.targets[rows, 1:length]).to(self.device)
        inputs = ids_MT.unsqueeze(1).contiguous(), targets_MT.flatten()
        if (len(rows), length) in self._programs:
            program, given = self._programs[len(rows), length]
            for tensor, values in zip(given, inputs, strict=True):
                tensor.copy_(values)
            program.run()
        else:
            program = self._compute(*inputs)
            if program is not None:
                self._programs[len(rows), length] = program, inputs
        return self._grad_MP[: len(rows)]

    def _compute(self, ids_M1T: torch.Tensor, targets_N: torch.Tensor):
        """Gradients of M strings; a program repeats this for other values of the arguments."""
        count, stack, operations = len(ids_M1T), self._stack, self._stack.operations
        stack.use(count)
        ones_N = torch.ones(len(targets_N), device=self.device)
        with operations.member_by_member(count, ids_M1T, targets_N, stack.theta) as queue:
            logits_NV = stack(ids_M1T).flatten(0, 2)
            nll_N = operations.token_nll(logits_NV, targets_N, IGNORED)
            grads = torch.autograd.grad(nll_N, stack.parameters, ones_N)
            operations.copy_(self._grad_MP[:count], operations.flat(grads))
        return None if queue is None else queue.program


def _cut_positions(model: PreTrainedModel, length: int) -> None:
    """Cut tables of positions after the positions of `length` tokens."""
    tokens = model.get_input_embeddings()
    for module in model.modules():
        if isinstance(module, torch.nn.Embedding) and module is not tokens:
            # OPT's table has rows before the first position.
            before = module.num_embeddings - model.config.max_position_embeddings
            module.weight = torch.nn.Parameter(module.weight[: before + length].detach())
