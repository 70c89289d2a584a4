"""What phases of unlearning minimise or maximise: pure functions of logits and targets.

Tensors have the models first (M), then the strings of a model's batch (B), their tokens (T) and the
vocabulary (V). Where a target is `IGNORED` there is padding, which counts nowhere. What is returned
per model (M) is a mean over the real tokens of its batch, in nats, as the loss of training is; per
string (MB), a sum over its tokens.
"""

from __future__ import annotations

from palimpsest.lazily import lazily

torch = lazily("torch")

IGNORED = -100  # as in training.batches, which imports torch


def real(targets_MBT: torch.Tensor) -> torch.Tensor:
    """Bool[M, B, T]: where a token is predicted, and not padding."""
    return targets_MBT != IGNORED


def per_token(values_MBT: torch.Tensor, targets_MBT: torch.Tensor) -> torch.Tensor:
    """Mean [M] of each model's values over the real tokens of its batch."""
    mask_MBT = real(targets_MBT)
    total_M = values_MBT.masked_fill(~mask_MBT, 0.0).sum((1, 2))
    return total_M / mask_MBT.sum((1, 2))


def token_nll(logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> torch.Tensor:
    """-log p(target) of every token [M, B, T]; 0 at padding."""
    nll = torch.nn.functional.cross_entropy(
        logits_MBTV.flatten(0, 2), targets_MBT.flatten(), ignore_index=IGNORED, reduction="none"
    )
    return nll.view(targets_MBT.shape)


def string_nll(logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> torch.Tensor:
    """-log p(string) [M, B], summed over the string's tokens."""
    return token_nll(logits_MBTV, targets_MBT).sum(-1)


def cross_entropy(logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> torch.Tensor:
    """Mean of -log p(target) over the tokens of a batch [M]: the loss of training."""
    return per_token(token_nll(logits_MBTV, targets_MBT), targets_MBT)
