"""Activation patching: what a model says if its lower layers are those of the original model.

Where knowledge of a string was only hidden in lower layers, upper layers still act on it: their
predictions come back when they are given the activations of the original model.

Source: Hong et al., Dissecting Fine-Tuning Unlearning in Large Language Models (2024), section 3,
which patches parts of single layers; here, all activations at the middle of the model are patched.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# Of a parameter's name: the number of its layer
LAYER = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.")
EMBEDDING = re.compile(r"(?:^|\.)embed\w*\.|(?:^|\.)w[tp]e\.")


def patched(
    weights: Mapping[str, torch.Tensor], original: Mapping[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """The weights of a model, with embeddings and the lower half of the layers of another one.

    At the middle, the activations at all positions are then those of the other model. Of a family
    that predicts with its table of tokens, the last step is the other model's, too.
    """
    layers = {name: int(found[1]) for name in weights if (found := LAYER.search(name))}
    middle = (max(layers.values()) + 1) // 2
    return {
        name: original[name] if _is_below(name, layers.get(name), middle) else weight
        for name, weight in weights.items()
    }


def _is_below(name: str, layer: int | None, middle: int) -> bool:
    if layer is None:
        # GPT-NeoX calls the matrix of its predictions embed_out
        return bool(EMBEDDING.search(name)) and "embed_out" not in name
    return layer < middle
