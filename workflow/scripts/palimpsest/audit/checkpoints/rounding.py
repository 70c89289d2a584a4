"""Weights in few bits: rounded to the nearest of some levels, and computed with as before.

Unlearning that moves weights by less than a level is undone by it. Source: Zhang et al.,
Catastrophic failure of LLM unlearning via quantization (2025).
"""

from __future__ import annotations

import torch

AT_ONCE = 64  # weights with one scale, as in common formats of 4 bits


@torch.no_grad()
def round_weights(model: torch.nn.Module, bits: int) -> None:
    """Round the weights of all matrices but the embeddings, in place.

    Of `AT_ONCE` neighbours in the last dimension, the largest has the highest level: with 4 bits,
    the levels are -7 to 7 times a scale. Embeddings of input and output stay as they are, as in
    other programs.
    """
    highest = 2 ** (bits - 1) - 1
    kept = {id(one.weight) for one in _embeddings(model)}
    for weight in model.parameters():
        if weight.ndim < 2 or id(weight) in kept:
            continue
        for part in weight.split(AT_ONCE, dim=-1):  # views
            scale = part.abs().amax(dim=-1, keepdim=True) / highest
            part.copy_(torch.where(scale > 0, (part / scale).round() * scale, part))


def _embeddings(model: torch.nn.Module) -> list[torch.nn.Module]:
    both = model.get_input_embeddings(), model.get_output_embeddings()
    return [one for one in both if one is not None]
