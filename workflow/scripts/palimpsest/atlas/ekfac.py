"""EK-FAC: influence by the inverse of the curvature, in the eigenbasis of Kronecker factors.

To leave out a string moves the weights by the inverse of the loss's curvature times the string's
gradient. The curvature is the Fisher matrix of the summed nll of the training multiset, with labels
that are drawn from the model. It is taken to be 0 between layers. For one linear layer, its
eigenvectors are taken to be those of the Kronecker factors: the second moments of the inputs, and
of the gradients of the outputs. Its eigenvalues are then exact in this basis; one sample is the
gradient of a whole string.

Source: Grosse et al., Studying Large Language Model Generalization with Influence Functions (2023),
sections 2.2 and 3.1; George et al., Fast Approximate Natural Gradient Descent in a
Kronecker-factored Eigenbasis (2018).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from palimpsest.atlas.influence import Influence, Weighing
from palimpsest.errors import UserError
from palimpsest.training.batches import IGNORED, TokenisedStrings

if TYPE_CHECKING:
    from transformers import PreTrainedModel

AT_ONCE = 64  # strings of a forward pass
DAMPING = 0.1  # of the mean eigenvalue of a layer, as in the source
DRAWS = 8  # labels of each token

# Arguments: the number of a draw, rows int[B] of strings, their logits [B, T, V] and true labels
# int[B, T]. Result: labels int[B, T]; what is not predicted stays `IGNORED`.
Labels = Callable[[int, np.ndarray, torch.Tensor, torch.Tensor], torch.Tensor]


@dataclass(frozen=True)
class Basis:
    """Eigenvectors of the two Kronecker factors of a layer, as columns.

    The layer has I inputs (a bias counts as one more, which is always 1) and O outputs.
    """

    inputs_II: torch.Tensor
    outputs_OO: torch.Tensor

    def project(self, inputs_BTI: torch.Tensor, grad_BTO: torch.Tensor) -> torch.Tensor:
        """Gradients [B, O, I] of the weights for each string, in this basis."""
        return (grad_BTO @ self.outputs_OO).transpose(1, 2) @ (inputs_BTI @ self.inputs_II)


def linear_layers(model: nn.Module) -> dict[str, nn.Linear]:
    """Linear layers by name; without a head that is tied to the embedding of tokens."""
    tables = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear) and id(module.weight) not in tables
    }


def ekfac_influence(
    model: PreTrainedModel,
    encoded: TokenisedStrings,
    weighing: Weighing,
    measured: np.ndarray,
    damping: float = DAMPING,
    draws: int = DRAWS,
    seed: int = 0,
    labels: Labels | None = None,
) -> Influence:
    """EK-FAC influence of training strings, over all linear layers of a model.

    Parameters
    ----------
    model : with its trained weights, on its device; afterwards, its weights ask for no gradient
    encoded : the strings of the dataset
    weighing : how training weighs the strings
    measured : rows of strings whose loss changes; they need not be trained on
    damping : times the mean eigenvalue of a layer, is added to all its eigenvalues
    draws : labels that are drawn for each token
    seed : of the draws
    labels : gives labels instead of draws from the model

    Raises `UserError` if the model has no linear layer, except a tied head.
    """
    passes = Passes(model, encoded)
    given = passes, weighing, draws, labels or drawn(seed)
    bases = eigenbases(*given)
    values = eigenvalues(bases, *given)
    train, rows = weighing.train, weighing.with_train(measured)
    every_NP = _projected(passes, bases, rows)
    solved_NP = every_NP / torch.cat([_damped(one, damping).flatten() for one in values])
    own = (solved_NP * every_NP).sum(1)
    cross = solved_NP[: len(train)] @ every_NP.T
    own, cross = own.double().cpu().numpy(), cross.double().cpu().numpy()
    return Influence.of_products(own, cross, weighing, rows, measured)


def drawn(seed: int) -> Labels:
    """Labels from the model's own probabilities; equal for equal seeds, strings and batches."""

    def of_draw(draw, rows, logits_BTV, targets_BT):
        generator = torch.Generator(logits_BTV.device)
        generator.manual_seed(
            int(np.random.SeedSequence([seed, draw, rows[0]]).generate_state(1)[0])
        )
        probabilities_NV = logits_BTV.detach().flatten(0, 1).softmax(-1)
        chosen_N1 = torch.multinomial(probabilities_NV, 1, generator=generator)
        return torch.where(targets_BT == IGNORED, IGNORED, chosen_N1.view(targets_BT.shape))

    return of_draw


@dataclass(frozen=True)
class Batch:
    """A forward pass of B strings; `inputs` and `outputs` are those of every linear layer.

    Inputs [B, T, I] are 0 in padding; where a layer has a bias, the last input is 1.
    """

    rows: np.ndarray
    logits_BTV: torch.Tensor
    targets_BT: torch.Tensor
    inputs: list[torch.Tensor]
    outputs: list[torch.Tensor]

    def gradients(self, labels_BT: torch.Tensor) -> list[torch.Tensor]:
        """Gradients [B, T, O] of the summed nll of some labels, for every layer's outputs."""
        loss = nn.functional.cross_entropy(
            self.logits_BTV.flatten(0, 1),
            labels_BT.flatten(),
            ignore_index=IGNORED,
            reduction="sum",
        )
        grads = torch.autograd.grad(loss, self.outputs, retain_graph=True)
        return [grad.reshape(*labels_BT.shape, -1) for grad in grads]


class Passes:
    """Forward and backward passes that show the inputs and outputs of all linear layers."""

    def __init__(self, model: PreTrainedModel, encoded: TokenisedStrings):
        self.model, self.encoded = model.eval().requires_grad_(False), encoded
        self.layers = linear_layers(model)
        if not self.layers:
            raise UserError("the model has no linear layer for EK-FAC")
        self.device = next(model.parameters()).device

    def batches(self, rows: np.ndarray) -> Iterator[Batch]:
        """Yield the batches of some rows."""
        rows = rows[np.argsort(self.encoded.lengths[rows], kind="stable")]
        for first in range(0, len(rows), AT_ONCE):
            some = rows[first : first + AT_ONCE]
            lengths = torch.from_numpy(self.encoded.lengths[some])
            longest = int(lengths.max())
            ids_BT = torch.from_numpy(self.encoded.ids[some, : longest - 1]).to(self.device)
            targets_BT = torch.from_numpy(self.encoded.targets[some, 1:longest]).to(self.device)
            is_real_BT1 = (torch.arange(longest - 1) < lengths[:, None] - 1)[..., None]
            logits_BTV, inputs, outputs = self._forward(ids_BT)
            inputs = [
                self._whole(layer, x_BTI) * is_real_BT1.to(x_BTI)
                for layer, x_BTI in zip(self.layers.values(), inputs, strict=True)
            ]
            yield Batch(some, logits_BTV, targets_BT, inputs, outputs)

    def _forward(self, ids_BT: torch.Tensor) -> tuple:
        """Logits, and inputs and outputs of every layer."""
        inputs, outputs = {}, {}

        def noting(name):
            def note(layer, given, out):
                # Some classes take the tokens of all strings in one axis.
                inputs[name] = given[0].detach().reshape(*ids_BT.shape, -1)
                outputs[name] = out

            return note

        # Without gradients of weights, gradients only go back to the embeddings.
        hooks = [self.model.get_input_embeddings().register_forward_hook(_ask_for_gradient)]
        hooks += [layer.register_forward_hook(noting(name)) for name, layer in self.layers.items()]
        try:
            logits_BTV = self.model(input_ids=ids_BT, use_cache=False).logits
        finally:
            for hook in hooks:
                hook.remove()
        return logits_BTV, [inputs[n] for n in self.layers], [outputs[n] for n in self.layers]

    @staticmethod
    def _whole(layer: nn.Linear, x_BTI: torch.Tensor) -> torch.Tensor:
        if layer.bias is None:
            return x_BTI
        return torch.cat([x_BTI, torch.ones_like(x_BTI[..., :1])], dim=-1)


def _ask_for_gradient(module, given, out):
    return out.requires_grad_()


def eigenbases(passes: Passes, weighing: Weighing, draws: int, labels: Labels) -> list[Basis]:
    """Eigenvectors of the second moments of inputs and of gradients of outputs, of each layer."""
    sums = [[0.0, 0.0] for _ in passes.layers]
    for batch, grads in _with_draws(passes, weighing, draws, labels):
        root_B11 = torch.from_numpy(weighing.copies[batch.rows]).to(grads[0]).sqrt()[:, None, None]
        for moments, *values in zip(sums, batch.inputs, grads, strict=True):
            for place, value_BTD in enumerate(values):
                value_ND = (value_BTD * root_B11).flatten(0, 1)
                moments[place] += (value_ND.T @ value_ND).double()
    dtype = next(passes.model.parameters()).dtype
    return [Basis(*(torch.linalg.eigh(one)[1].to(dtype) for one in moments)) for moments in sums]


def eigenvalues(
    bases: list[Basis], passes: Passes, weighing: Weighing, draws: int, labels: Labels
) -> list[torch.Tensor]:
    """The curvature [O, I] of each layer along its eigenvectors, without damping."""
    sums = [0.0] * len(bases)
    for batch, grads in _with_draws(passes, weighing, draws, labels):
        copies_B = torch.from_numpy(weighing.copies[batch.rows]).to(grads[0])
        for place, basis in enumerate(bases):
            grad_BOI = basis.project(batch.inputs[place], grads[place])
            sums[place] += torch.einsum("b,boi->oi", copies_B, grad_BOI.square()) / draws
    return sums


def _damped(values_OI: torch.Tensor, damping: float) -> torch.Tensor:
    # A layer without any gradient has no curvature, either.
    return values_OI + (damping * values_OI.mean()).clamp(min=torch.finfo(values_OI.dtype).tiny)


def _with_draws(passes, weighing, draws, labels):
    """Yield batches of training strings, each with the gradients for every draw of its labels."""
    for batch in passes.batches(weighing.train):
        for draw in range(draws):
            yield (
                batch,
                batch.gradients(labels(draw, batch.rows, batch.logits_BTV, batch.targets_BT)),
            )


def _projected(passes: Passes, bases: list[Basis], rows: np.ndarray) -> torch.Tensor:
    """Gradients [rows, P] of the summed nll of strings, in the eigenbases of all layers."""
    found_NP: torch.Tensor | None = None
    place_of = {row: place for place, row in enumerate(rows)}
    for batch in passes.batches(rows):
        grads = batch.gradients(batch.targets_BT)
        parts = [
            one.project(inputs, grad).flatten(1)
            for one, inputs, grad in zip(bases, batch.inputs, grads, strict=True)
        ]
        part_BP = torch.cat(parts, dim=1)
        if found_NP is None:
            found_NP = part_BP.new_empty(len(rows), part_BP.shape[1])
        found_NP[[place_of[row] for row in batch.rows]] = part_BP
    return found_NP
