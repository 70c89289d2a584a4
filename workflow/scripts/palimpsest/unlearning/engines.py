"""What unlearning asks of an engine: some models of one architecture, side by side.

The fleet holds many, the other engine one; phases of a method cannot tell. Tensors have the models
first (M), then the strings of a model's batch (B), their tokens (T) and the vocabulary (V).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import torch

    Weights = dict[str, torch.Tensor]  # by the parameter's name, each [M, *its shape]


class Models(Protocol):
    """M models that unlearn together, each for itself."""

    count: int
    device: torch.device
    shapes: dict[str, torch.Size]  # of one model's parameters, by name; a tied one has one name
    embeddings: frozenset[str]  # the names of the tables of tokens and positions
    head: frozenset[str]  # the output head's; with tied weights that of the embedding

    def logits(self, ids_MBT: torch.Tensor) -> torch.Tensor:
        """Logits float32[M, B, T, V] of the next token at every position."""

    def hidden(self, ids_MBT: torch.Tensor, layer: int) -> torch.Tensor:
        """What layer `layer` (0: the embeddings) leaves at every position, [M, B, T, D]."""

    def gradients(self, loss_M: torch.Tensor) -> Weights:
        """Of every model's own loss, without a step."""

    def step(self, loss_M: torch.Tensor, rate_M: torch.Tensor) -> None:
        """One step of AdamW of every model at its learning rate, its gradient clipped."""

    def fresh_optimizer(self) -> None:
        """Forget the optimiser's moments, as a new phase does."""

    def weights(self) -> AbstractContextManager[Weights]:
        """The weights, which may be changed in place inside of the context."""

    def initial(self, seeds: list[int]) -> Weights:
        """Weights as before any fine-tuning: a twin's drawn anew from a seed for each model, a
        full model's the pretrained ones, whatever the seed.
        """

    def layers(self) -> Iterator[str]:
        """Names of the layers, in order: `embedding`, `0`, `1`, ..., `head`."""
