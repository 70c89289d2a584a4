"""Many trained twins held at once, as a stack (see `training.fleet`)."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np
import torch

from palimpsest.models import Model
from palimpsest.models.build import build
from palimpsest.models.parameter_names import embeddings_and_head, layers
from palimpsest.models.sites import Site
from palimpsest.models.trained import ADAMW, MOMENTUM, SGD
from palimpsest.training.fleet import FleetEngine
from palimpsest.training.fleet.members import Member
from palimpsest.training.fleet.memory import Needs, most_members
from palimpsest.training.fleet.probe import probe
from palimpsest.training.fleet.stack import Stack
from palimpsest.training.recipe import ADAM_BETAS, ADAM_EPS
from palimpsest.training.runs import Material, Run

# A step of unlearning needs more memory than a step of training: it also holds the outputs of the
# original models and the values of other losses.
TIMES_TRAINING = 3


class FleetHolder:
    """Holds many twins at once in float32: the fastest number of them that fits into memory."""

    rank = 0
    dtype = torch.float32

    def __init__(self, run: Run, material: Material, threads: int, memory: int):
        # The training engine sets threads and device, and knows how many models fit.
        self._trainer = FleetEngine("", threads, memory)
        self.run, self.device = run, self._trainer.device
        # The number of models that fit depends on the strings.
        self._material, self._vocabulary = material, material.vocabulary

    def together(self, n: int) -> int:
        if n == 1:
            return 1  # without the probe, which takes longer than one model's passes
        return most_members(self._trainer, n, self._needs)

    @cached_property
    def _needs(self) -> Needs:
        """What training needs, but with the activations of all models at once, and more."""
        needs = probe(Member(self.run, self._material, None), self.device)
        return Needs(TIMES_TRAINING * sum(needs), 0)

    def open(self, weights: list[dict[str, torch.Tensor]]) -> FleetModels:
        recipe = self.run.recipe
        return FleetModels(
            self.run.row,
            self._vocabulary,
            weights,
            self.device,
            recipe.weight_decay,
            recipe.gradient_clipping,
        )

    def agree(self, values: np.ndarray) -> np.ndarray:
        return values

    def wait(self) -> None:
        """There is no other process to wait for."""

    def close(self) -> None:
        """Nothing is open."""


class FleetModels:
    """M twins of one model, in float32; `weights` holds one dictionary for each, by parameter name.

    Implements `palimpsest.models.Models`. `weight_decay` and `clipping` come from the recipe.
    """

    def __init__(
        self,
        row: Model,
        vocabulary: int,
        weights: list[dict[str, torch.Tensor]],
        device: torch.device,
        weight_decay: float = 0.0,
        clipping: float = 1.0,
    ):
        self.row, self.vocabulary, self.device = row, vocabulary, device
        self.weight_decay, self.clipping = weight_decay, clipping
        model = self._build(seed=0)
        self.embeddings, self.head = embeddings_and_head(model)
        self.stack = Stack(model, len(weights), device)
        self.shapes = self.stack.shapes
        for place, tensors in enumerate(weights):
            self.stack.load(place, [tensors[name] for name in self.shapes])
        self.fresh_optimizer()

    @property
    def count(self) -> int:
        return len(self.stack.theta)

    def logits(self, ids_MBT: torch.Tensor) -> torch.Tensor:
        if torch.is_grad_enabled():
            return self.stack(ids_MBT)
        return self.stack.predictions(ids_MBT).clone()

    def hidden(self, ids_MBT: torch.Tensor, layer: int) -> torch.Tensor:
        return self.stack.hidden(ids_MBT, layer)

    def sites(self) -> list[Site]:
        return self.stack.sites()

    def activations(self, ids_MBT: torch.Tensor, sites: Sequence[Site]) -> list[torch.Tensor]:
        return self.stack.activations(ids_MBT, sites)

    def gradients(self, loss_M: torch.Tensor) -> dict[str, torch.Tensor]:
        return dict(zip(self.shapes, self._grads(loss_M), strict=True))

    def step(self, loss_M: torch.Tensor, rate_M: torch.Tensor) -> None:
        grad_MP = torch.cat([grad.flatten(1) for grad in self._grads(loss_M)], dim=1)
        self._optimizer.step(grad_MP, rate_M.to(self.device, torch.float64))

    def _grads(self, loss_M: torch.Tensor) -> list[torch.Tensor]:
        """The gradients in the order of `shapes`; 0 for weights that the loss does not use."""
        return torch.autograd.grad(
            loss_M.sum(), self.stack.parameters, allow_unused=True, materialize_grads=True
        )

    def fresh_optimizer(self, kind: str = ADAMW) -> None:
        if kind == SGD:
            self._optimizer = _SGD(self.stack, self.clipping)
        else:
            self._optimizer = _AdamW(self.stack, self.weight_decay, self.clipping)

    def optimizer_state(self) -> _AdamW | _SGD:
        return self._optimizer

    def restore_optimizer(self, state: _AdamW | _SGD) -> None:
        self._optimizer = state

    @contextlib.contextmanager
    def weights(self) -> Iterator[dict[str, torch.Tensor]]:
        with torch.no_grad():
            views = self.stack.views(self.stack.theta)
            yield dict(zip(self.shapes, views, strict=True))

    def initial(self, seeds: list[int]) -> dict[str, torch.Tensor]:
        """Weights before any training, drawn for each model from its seed."""
        models = [dict(self._build(seed).named_parameters()) for seed in seeds]
        return {
            name: torch.stack([model[name].detach() for model in models]).to(self.device)
            for name in self.shapes
        }

    def layers(self) -> list[str]:
        return layers(self.shapes)

    def _build(self, seed: int):
        return build(self.row, "twin", self.vocabulary, seed, torch.float32).eval()


class _AdamW:
    """AdamW for every model of a stack."""

    def __init__(self, stack: Stack, weight_decay: float, clipping: float):
        self.stack, self.weight_decay, self.clipping = stack, weight_decay, clipping
        self.first_MP, self.second_MP = (torch.zeros_like(stack.theta) for _ in range(2))
        self.steps_taken = 0

    def step(self, grad_MP: torch.Tensor, rate_M: torch.Tensor) -> None:
        self.steps_taken += 1
        self.stack.operations.adamw_(
            self.stack.theta,
            grad_MP,
            self.first_MP,
            self.second_MP,
            rate_M,
            torch.full_like(rate_M, self.steps_taken),
            *ADAM_BETAS,
            ADAM_EPS,
            self.weight_decay,
            self.clipping,
        )


class _SGD:
    """SGD with momentum for every model of a stack; the arithmetic is that of torch.optim.SGD."""

    def __init__(self, stack: Stack, clipping: float):
        self.stack, self.clipping = stack, clipping
        self.velocity_MP = torch.zeros_like(stack.theta)

    def step(self, grad_MP: torch.Tensor, rate_M: torch.Tensor) -> None:
        norm_M = torch.linalg.vector_norm(grad_MP, dim=1)
        shrink_M = (self.clipping / (norm_M + 1e-6)).clamp(max=1.0)
        self.velocity_MP.mul_(MOMENTUM).add_(grad_MP * shrink_M.unsqueeze(1))
        self.stack.theta.sub_(rate_M.float().unsqueeze(1) * self.velocity_MP)
