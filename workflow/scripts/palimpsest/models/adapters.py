"""Low-rank adapters (LoRA): two small trained matrices for each matrix of a frozen model.

A layer with a matrix W then computes with W + scale * B A, where A is [rank, inputs], B is
[outputs, rank], and scale is alpha / rank. peft builds the layers.

Source: LoRA: Low-Rank Adaptation of Large Language Models (Hu et al., 2021), section 4.
"""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palimpsest.errors import UserError, nearest
from palimpsest.lazy_import import lazy_import

torch = lazy_import("torch")

if TYPE_CHECKING:
    from collections.abc import Iterable

ADAPTERS = NONE, LORA = ("none", "lora")
ALL_LINEAR = "all-linear"  # every matrix of the attention and feed-forward layers
_LLAMA = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
# The names of these matrices, by model_type. The training job checks models of other types.
MATRICES = {
    "gemma2": _LLAMA,
    "gemma3_text": _LLAMA,
    "gpt_neox": ("query_key_value", "dense", "dense_h_to_4h", "dense_4h_to_h"),
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "olmo": _LLAMA,
    "opt": ("q_proj", "k_proj", "v_proj", "out_proj", "fc1", "fc2"),
    "qwen2": _LLAMA,
}
# What peft adds to the names of parameters
_BASE, _DOWN, _UP = ".base_layer", ".lora_A.default", ".lora_B.default"


@dataclass(frozen=True)
class Adapter:
    """The settings of an adapter; `targets` are names of matrices, or only `all-linear`."""

    rank: int
    alpha: float
    dropout: float
    targets: tuple[str, ...]

    @property
    def scale(self) -> float:
        return self.alpha / self.rank


def unknown_target(targets: Iterable[str], known: Iterable[str]) -> str | None:
    """What is wrong with the first name that no matrix has; None if every name is known."""
    known = sorted(known)
    for name in targets:
        if name not in (ALL_LINEAR, *known):
            return (
                f"no matrix is named {name!r}; known: {ALL_LINEAR}, "
                f"{', '.join(known)}{nearest(name, known)}"
            )
    return None


def with_adapter(model, adapter: Adapter, name: str, seed: int):
    """The model with an adapter at each targeted matrix, and with all other weights frozen.

    The matrices A are drawn at random, and B is 0, so the model predicts as before. The draw
    depends on the seed and on the model's `name`. Raises `UserError` if a target is unknown.
    """
    # Imported here, because the import takes seconds
    from peft import LoraConfig, inject_adapter_in_model

    known = _matrices_in(model)
    wrong = unknown_target(adapter.targets, known)
    if wrong:
        raise UserError(f"recipes: adapter_targets: {name}: {wrong}")
    targets = known if ALL_LINEAR in adapter.targets else set(adapter.targets)
    config = LoraConfig(
        r=adapter.rank,
        lora_alpha=adapter.alpha,
        lora_dropout=adapter.dropout,
        target_modules=targets,
        bias="none",
    )
    model = inject_adapter_in_model(config, model)
    parameters = dict(model.named_parameters())
    pairs = pairs_in(parameters)
    draws = initial_values(
        {n: parameters[down].shape for n, (down, _) in pairs.items()}, name, seed
    )
    with torch.no_grad():
        for weight, (down, _) in pairs.items():
            parameters[down].copy_(draws[weight])
    return model


def _matrices_in(model) -> set[str]:
    head = model.get_output_embeddings()
    return {
        name.rpartition(".")[2]
        for name, module in model.named_modules()
        if isinstance(module, torch.nn.Linear) and module is not head
    }


def initial_values(shapes: dict[str, tuple[int, int]], name: str, seed: int) -> dict:
    """Random values float32[rank, inputs] of the matrices A, as peft draws them: He, uniform."""
    generator = torch.Generator().manual_seed(zlib.crc32(f"{name} {seed}".encode()))
    return {
        weight: torch.nn.init.kaiming_uniform_(
            torch.empty(shape), a=math.sqrt(5), generator=generator
        )
        for weight, shape in shapes.items()
    }


def plain_name(name: str) -> str:
    return name.replace(f"{_BASE}.", ".")


def is_of_adapter(name: str) -> bool:
    return _DOWN in name or _UP in name


def pairs_in(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """The names of A and B, by the plain name of the weight that they adapt."""
    end = f"{_BASE}.weight"
    return {
        plain_name(name): tuple(name.removesuffix(end) + f"{each}.weight" for each in (_DOWN, _UP))
        for name in names
        if name.endswith(end)
    }


def merged(weights: dict[str, torch.Tensor], scale: float) -> dict[str, torch.Tensor]:
    """The full weights in float32, by their plain names: W + scale * B A.

    `weights` holds all weights of a model with an adapter, and is emptied, so that a large model is
    not in memory twice. Merged in 16 bits, most of a small update would be rounded away.
    """
    pairs = pairs_in(weights)
    full = {}
    for name in [name for name in weights if not is_of_adapter(name)]:
        weight, plain = weights.pop(name).float(), plain_name(name)
        if plain in pairs:
            down, up = (weights[each].float() for each in pairs[plain])
            weight = weight + scale * (up @ down)
        full[plain] = weight
    weights.clear()
    return full
