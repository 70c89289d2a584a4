"""Losses of unlearning: pure functions of logits and targets.

The axes of tensors are the models (M), the strings of a model's batch (B), their tokens (T) and the
vocabulary (V). A target equal to `IGNORED` is padding, and padding never counts. A value per model
(M) is a mean over the real tokens of its batch, in nats, like the loss of training. A value per
string (MB) is a sum over the tokens of the string.
"""

from __future__ import annotations

import math

from palimpsest.lazy_import import lazy_import

torch = lazy_import("torch")

IGNORED = -100  # the value of training.batches, which is not imported here as it imports torch


def real(targets_MBT: torch.Tensor) -> torch.Tensor:
    """Bool[M, B, T]: whether a target is a token, and not padding."""
    return targets_MBT != IGNORED


def per_token(values_MBT: torch.Tensor, targets_MBT: torch.Tensor) -> torch.Tensor:
    """Mean [M] of each model's values over the real tokens of its batch."""
    mask_MBT = real(targets_MBT)
    total_M = values_MBT.masked_fill(~mask_MBT, 0.0).sum((1, 2))
    return total_M / mask_MBT.sum((1, 2))


def token_nll(logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> torch.Tensor:
    """-log p(target) of every token [M, B, T]; 0 at padding.

    Uses the operation with which training computes this on the device, for logits of both engines.
    """
    from palimpsest.training.fleet.stack import operations_for

    nll = operations_for(logits_MBTV.device).token_nll
    return nll(logits_MBTV.flatten(0, 2), targets_MBT.flatten(), IGNORED).view(targets_MBT.shape)


def string_nll(logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> torch.Tensor:
    """-log p(string) [M, B], summed over the string's tokens."""
    return token_nll(logits_MBTV, targets_MBT).sum(-1)


def cross_entropy(logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> torch.Tensor:
    """Mean of -log p(target) over the tokens of a batch [M]: the loss of training."""
    return per_token(token_nll(logits_MBTV, targets_MBT), targets_MBT)


def token_kl(p_MBTV: torch.Tensor, q_MBTV: torch.Tensor) -> torch.Tensor:
    """KL(p || q) [M, B, T] of two distributions, which are given as logits."""
    log_p, log_q = p_MBTV.log_softmax(-1), q_MBTV.log_softmax(-1)
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def kl(p_MBTV: torch.Tensor, q_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> torch.Tensor:
    """KL(p || q) = sum p log(p / q), a mean over real tokens [M]."""
    return per_token(token_kl(p_MBTV, q_MBTV), targets_MBT)


def symmetric_kl(
    p_MBTV: torch.Tensor, q_MBTV: torch.Tensor, targets_MBT: torch.Tensor
) -> torch.Tensor:
    """(KL(p || q) + KL(q || p)) / 2, a mean over real tokens [M]."""
    log_p, log_q = p_MBTV.log_softmax(-1), q_MBTV.log_softmax(-1)
    far_MBT = ((log_p.exp() - log_q.exp()) * (log_p - log_q)).sum(-1)
    return per_token(far_MBT, targets_MBT) / 2


def token_entropy(logits_MBTV: torch.Tensor) -> torch.Tensor:
    """-sum p log p [M, B, T]."""
    log_p = logits_MBTV.log_softmax(-1)
    return -(log_p.exp() * log_p).sum(-1)


def kl_from_uniform(logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> torch.Tensor:
    """KL(p || uniform) = log V - H(p), a mean over real tokens [M]."""
    most = math.log(logits_MBTV.shape[-1])
    return per_token(most - token_entropy(logits_MBTV), targets_MBT)


def entropy_gap(
    logits_MBTV: torch.Tensor, reference_MBTV: torch.Tensor, targets_MBT: torch.Tensor
) -> torch.Tensor:
    """(H(p) - H(p_reference))^2, a mean over real tokens [M].

    Source: Are we making progress in unlearning?, appendix A.4 (Sebastian).
    """
    gap_MBT = token_entropy(logits_MBTV) - token_entropy(reference_MBTV)
    return per_token(gap_MBT.square(), targets_MBT)


def squared_error(
    values_MBTD: torch.Tensor, reference_MBTD: torch.Tensor, targets_MBT: torch.Tensor
) -> torch.Tensor:
    """Mean of (value - reference)^2 over the last axis and over real tokens [M]."""
    return per_token((values_MBTD - reference_MBTD).square().mean(-1), targets_MBT)


def string_means(values_MBTD: torch.Tensor, targets_MBT: torch.Tensor) -> torch.Tensor:
    """Mean over the real tokens of each string, [M, B, D]."""
    mask_MBT1 = real(targets_MBT).unsqueeze(-1)
    return values_MBTD.masked_fill(~mask_MBT1, 0.0).sum(2) / mask_MBT1.sum(2)


def contrastive(
    forget_MBV: torch.Tensor, retain_MCV: torch.Tensor, temperature: float
) -> torch.Tensor:
    """-log softmax_c(f_b . r_c / temperature), a mean over pairs of strings b, c [M].

    The loss is smallest if the output f_b of a forget string is equally similar to the outputs r_c
    of all retain strings.

    Source: Are we making progress in unlearning?, appendix A.4, and the released code (Fanchuan).
    """
    similarity_MBC = forget_MBV @ retain_MCV.transpose(1, 2) / temperature
    return -similarity_MBC.log_softmax(-1).mean((1, 2))


def npo(nll_MB: torch.Tensor, reference_nll_MB: torch.Tensor, beta: float) -> torch.Tensor:
    """2 / beta * log(1 + (p / p_reference)^beta), a mean over strings [M].

    Source: Negative Preference Optimization (Zhang et al., 2024), equation 3.
    """
    log_ratio_MB = reference_nll_MB - nll_MB
    return 2 / beta * torch.nn.functional.softplus(beta * log_ratio_MB).mean(1)


def simnpo(nll_MB: torch.Tensor, n_tokens_MB: torch.Tensor, beta: float, gamma: float):
    """-2 / beta * log sigmoid(-beta * log p / length - gamma), a mean over strings [M].

    Source: Simplicity Prevails: Rethinking Negative Preference Optimization for LLM Unlearning
    (Fan et al., 2024), equation 4.
    """
    margin_MB = beta * nll_MB / n_tokens_MB - gamma
    return 2 / beta * torch.nn.functional.softplus(-margin_MB).mean(1)


def dpo(
    nll_MB: torch.Tensor,
    reference_nll_MB: torch.Tensor,
    preferred_nll_MP: torch.Tensor,
    preferred_reference_nll_MP: torch.Tensor,
    beta: float,
) -> torch.Tensor:
    """-1 / beta * log sigmoid(beta * (log r(preferred) - log r(string))), a mean over strings [M].

    r is p / p_reference. One string is preferred to all (P is 1), or to each string another one.

    Source: Negative Preference Optimization (Zhang et al., 2024), equation 2, after Rafailov et
    al. (2023).
    """
    preferred_MP = preferred_reference_nll_MP - preferred_nll_MP
    margin_MB = beta * (preferred_MP - (reference_nll_MB - nll_MB))
    return torch.nn.functional.softplus(-margin_MB).mean(1) / beta


def undial(
    logits_MBTV: torch.Tensor,
    reference_MBTV: torch.Tensor,
    targets_MBT: torch.Tensor,
    gamma: float,
) -> torch.Tensor:
    """Cross-entropy with softmax(reference - gamma * one_hot(target)), a mean over tokens [M].

    Source: UNDIAL (Dong et al., 2024), equations 2 and 3.
    """
    places_MBT1 = targets_MBT.clamp(min=0).unsqueeze(-1)
    lowered = torch.full_like(places_MBT1, -gamma, dtype=reference_MBTV.dtype)
    teacher = reference_MBTV.scatter_add(-1, places_MBT1, lowered).softmax(-1)
    return per_token(-(teacher * logits_MBTV.log_softmax(-1)).sum(-1), targets_MBT)


def weighted_ascent(
    logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor, beta1: float, beta2: float = 0.0
) -> torch.Tensor:
    """p^beta1 * (1 - p)^beta2 * log p, a mean over tokens [M]; the weights have no gradient.

    Source: Rethinking LLM Unlearning Objectives (Wang et al., 2025), with beta2 0; Exploring
    Criteria of Loss Reweighting to Enhance LLM Unlearning (Yang et al., 2025).
    """
    nll_MBT = token_nll(logits_MBTV, targets_MBT)
    p_MBT = (-nll_MBT.detach()).exp().clamp(max=1.0)
    return -per_token(p_MBT**beta1 * (1 - p_MBT) ** beta2 * nll_MBT, targets_MBT)


def cross_entropy_unlearning(logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> torch.Tensor:
    """Cross-entropy with softmax(logits, the target's set to -inf), a mean over tokens [M].

    The second distribution has no gradient.

    Source: CE-U: Cross Entropy Unlearning (Yang, 2025).
    """
    places_MBT1 = targets_MBT.clamp(min=0).unsqueeze(-1)
    teacher = logits_MBTV.detach().scatter(-1, places_MBT1, -math.inf).softmax(-1)
    return per_token(-(teacher * logits_MBTV.log_softmax(-1)).sum(-1), targets_MBT)
