"""Rounding of weights to 4 bits, as when a model is compressed for use."""

from __future__ import annotations

from palimpsest.lazy_import import lazy_import

torch = lazy_import("torch")

LEVELS = 7  # of each sign: a 4-bit whole number, without -8, so that the levels are symmetric
GROUP = 64  # weights of a row that share a scale


def rounded_to_4_bits(weight: torch.Tensor) -> torch.Tensor:
    """A weight matrix [..., columns] whose values are rounded to 15 levels per group.

    Each group of at most 64 neighbours in a row has a scale, so that its largest absolute value is
    the last level; every value is rounded to the nearest level. Vectors, such as biases and norms,
    stay as they are in practice, so this function is for matrices.

    Source: round-to-nearest quantisation, the baseline of GPTQ (Frantar et al., 2023), section 4;
    its effect on unlearning: Catastrophic failure of LLM unlearning via quantization (Zhang et al.,
    2025).
    """
    parts = weight.split(GROUP, dim=-1)
    return torch.cat([_rounded(part) for part in parts], dim=-1)


def _rounded(part: torch.Tensor) -> torch.Tensor:
    scale = part.abs().amax(-1, keepdim=True) / LEVELS
    return torch.where(scale > 0, torch.round(part / scale.clamp(min=1e-38)) * scale, part)
