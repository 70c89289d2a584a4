"""Trained models, one or many of one architecture side by side, whichever engine holds them.

This is what a trace cannot answer: what a model says of any tokens, what its layers hold, what its
weights are. A fleet holds many models, the engine `deepspeed` holds one; who asks cannot tell.
Tensors have the models first (M), then the strings of a model's batch (B), their tokens (T) and the
vocabulary (V).
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from palimpsest.lazy_import import lazy_import

torch = lazy_import("torch")

if TYPE_CHECKING:
    import numpy as np

    Weights = dict[str, torch.Tensor]  # by the parameter's name, each [M, *its shape]


class Models(Protocol):
    """M models, each for itself. They can be asked, changed and trained on."""

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
        """Forget the optimiser's moments."""

    def weights(self) -> AbstractContextManager[Weights]:
        """The weights, which may be changed in place inside of the context."""

    def initial(self, seeds: list[int]) -> Weights:
        """Weights as before any fine-tuning: a twin's drawn anew from a seed for each model, a
        full model's the pretrained ones, whatever the seed.
        """

    def layers(self) -> list[str]:
        """Names of the layers, in order: `embedding`, `0`, `1`, ..., `head`."""


class Holder(Protocol):
    """An engine that opens models with given weights; several processes may share one model."""

    rank: int  # of this process; the first one, 0, writes what is found

    def together(self, n: int) -> int:
        """How many of `n` models are opened at once."""

    def open(self, weights: list[dict[str, torch.Tensor]]) -> Models:
        """Models with the given weights; those that were opened before may be gone."""

    def agree(self, values: np.ndarray) -> np.ndarray:
        """What the first process has, in all."""

    def wait(self) -> None:
        """Wait for all processes to come here."""

    def close(self) -> None:
        """Leave the group of processes; nothing can be opened after that."""


def generate(models: Models, prompts_MBT: torch.Tensor, n_tokens: int) -> torch.Tensor:
    """The most probable continuation int64[M, B, n_tokens] of each prompt, token by token.

    Every token is the most probable one after all before it (greedy decoding; of equal ones the
    first). Prompts are of one length: an end token is a token like any other.
    """
    ids_MBT = prompts_MBT
    with torch.no_grad():
        for _ in range(n_tokens):
            likeliest_MB = models.logits(ids_MBT)[..., -1, :].argmax(-1)
            ids_MBT = torch.cat([ids_MBT, likeliest_MB.unsqueeze(-1)], dim=-1)
    return ids_MBT[..., prompts_MBT.shape[-1] :]
