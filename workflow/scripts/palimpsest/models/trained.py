"""The interface of trained models: one or many models of one architecture, for both engines.

The interface gives what a trace does not hold: logits for any tokens, hidden states, gradients and
weights. The engine `fleet` holds many models, and the engine `deepspeed` holds one; the interface
is the same. The axes of tensors are the models (M), the strings of a model's batch (B), their
tokens (T) and the vocabulary (V).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Protocol

from palimpsest.lazy_import import lazy_import
from palimpsest.models.sites import Site

torch = lazy_import("torch")

OPTIMIZERS = ADAMW, SGD = ("adamw", "sgd")
MOMENTUM = 0.9  # of SGD

if TYPE_CHECKING:
    import numpy as np

    Weights = dict[str, torch.Tensor]  # by the parameter's name, each [M, *its shape]


class Models(Protocol):
    """M independent models, which can be queried, changed and trained further."""

    count: int
    device: torch.device
    shapes: dict[str, torch.Size]  # shapes of one model's parameters; a tied one is there once
    embeddings: frozenset[str]  # names of the embeddings of tokens and positions
    head: frozenset[str]  # name of the output head's weights; if tied, name of the embedding

    def logits(self, ids_MBT: torch.Tensor) -> torch.Tensor:
        """Logits float32[M, B, T, V] of the next token at every position."""

    def hidden(self, ids_MBT: torch.Tensor, layer: int) -> torch.Tensor:
        """Hidden states [M, B, T, D], as Hugging Face's `hidden_states[layer]`.

        Layer 0 is the embeddings, and layer k > 0 the output of block k - 1. The last layer is the
        exception: it is the output of the last block after the final norm.
        """

    def sites(self) -> list[Site]:
        """The places in the blocks whose activations can be read, block after block."""

    def activations(self, ids_MBT: torch.Tensor, sites: Sequence[Site]) -> list[torch.Tensor]:
        """Activations float32[M, B, T, N] at some sites, without gradients.

        Raises `UserError` for a site that the models lack, and names those that they have.
        """

    def gradients(self, loss_M: torch.Tensor) -> Weights:
        """Gradients of every model's own loss, without a step."""

    def step(self, loss_M: torch.Tensor, rate_M: torch.Tensor) -> None:
        """One step of the optimiser for every model at its own rate, with its gradient clipped."""

    def fresh_optimizer(self, kind: str = ADAMW) -> None:
        """Begin a new optimiser, with moments of 0.

        `adamw` has the weight decay of training. `sgd` has momentum `MOMENTUM`, no decay.
        """

    def optimizer_state(self) -> object:
        """The optimiser with its moments, for `restore_optimizer` of the same models."""

    def restore_optimizer(self, state: object) -> None:
        """Continue with the state of an earlier optimiser."""

    def weights(self) -> AbstractContextManager[Weights]:
        """The weights, which may be changed in place inside of the context.

        They may be on another device than the models.
        """

    def initial(self, seeds: list[int]) -> Weights:
        """Weights before any fine-tuning.

        A twin's weights are drawn from a seed for each model. A full model's weights are the
        pretrained ones, for any seed.
        """

    def layers(self) -> list[str]:
        """Names of the layers, in order: `embedding`, `0`, `1`, ..., `head`."""


class Holder(Protocol):
    """An engine that opens models with given weights; several processes may share one model."""

    rank: int  # of this process; the process of rank 0 writes the results
    dtype: torch.dtype  # of the weights with which models predict

    def together(self, n: int) -> int:
        """How many of `n` models are open at the same time."""

    def open(self, weights: list[dict[str, torch.Tensor]]) -> Models:
        """Models with the given weights; models opened before may become invalid."""

    def agree(self, values: np.ndarray) -> np.ndarray:
        """Copy the first process's values to all processes."""

    def wait(self) -> None:
        """Wait until all processes have called this."""

    def close(self) -> None:
        """Leave the group of processes. Nothing can be opened afterwards."""


def generate(models: Models, prompts_MBT: torch.Tensor, n_tokens: int) -> torch.Tensor:
    """The most probable continuation int64[M, B, n_tokens] of each prompt, token by token.

    This is greedy decoding: each token is the most probable one (the first of equally probable
    ones). All prompts have the same length. An end token does not end the continuation.
    """
    ids_MBT = prompts_MBT
    with torch.no_grad():
        for _ in range(n_tokens):
            likeliest_MB = models.logits(ids_MBT)[..., -1, :].argmax(-1)
            ids_MBT = torch.cat([ids_MBT, likeliest_MB.unsqueeze(-1)], dim=-1)
    return ids_MBT[..., prompts_MBT.shape[-1] :]


def n_last_right(logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> torch.Tensor:
    """How many of a string's last tokens greedy decoding gives right, int64[M, B].

    Greedy decoding from all tokens before the last l gives these l tokens exactly if each of them
    is the most probable one after the true tokens before it. So one forward pass over the true
    tokens answers for every l.

    Parameters
    ----------
    logits_MBTV : float[M, B, T, V], of the next token at every position
    targets_MBT : int[M, B, T], the true tokens; negative where there is none

    Source: Carlini et al., Extracting training data from large language models (2021).
    """
    is_real_MBT = targets_MBT >= 0
    right_MBT = (logits_MBTV.argmax(-1) == targets_MBT) | ~is_real_MBT
    # From the end, 1 until the first wrong token; padding counts for nothing.
    run_MBT = right_MBT.flip(-1).long().cumprod(-1).flip(-1)
    return (run_MBT * is_real_MBT).sum(-1)
