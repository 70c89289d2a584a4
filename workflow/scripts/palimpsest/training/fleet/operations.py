"""The operations of stacked models in plain PyTorch: for GPUs, and as a reference for CPU kernels.

The first axis of every tensor of parameters is the members (M). Activations are [M, N, D], where N
counts the tokens of all strings in a member's batch.
"""

import contextlib

import torch
from torch.nn import functional

ACTIVATIONS = {
    "relu": functional.relu,
    "gelu": functional.gelu,
    "silu": functional.silu,
    "gelu_pytorch_tanh": lambda x: functional.gelu(x, approximate="tanh"),
}


def member_by_member(members: int, *changing) -> contextlib.AbstractContextManager:
    """On the CPU, kernels that are called in this context do one member after another."""
    return contextlib.nullcontext()


def copy_(out, x) -> None:
    """Write `x` into `out`."""
    out.copy_(x)


def embedding(ids_MN, weight_MVD) -> torch.Tensor:
    """[M, N, D]: each member's rows of its own table."""
    members, vocabulary, width = weight_MVD.shape
    first_M1 = torch.arange(0, members * vocabulary, vocabulary, device=ids_MN.device)[:, None]
    return functional.embedding(ids_MN + first_M1, weight_MVD.reshape(-1, width))


def linear(x_MNI, weight_MOI, bias_MO=None) -> torch.Tensor:
    """[M, N, O]: each member's rows through its own weights."""
    weight_MIO = weight_MOI.transpose(1, 2)
    if bias_MO is None:
        return torch.bmm(x_MNI, weight_MIO)
    return torch.baddbmm(bias_MO.unsqueeze(1), x_MNI, weight_MIO)


def rms_norm(x_MND, weight_MD, eps: float, offset: float = 0.0) -> torch.Tensor:
    """Rows divided by their root mean square, times each member's own weights plus `offset`."""
    weight_M1D = (weight_MD + offset).unsqueeze(1)
    return functional.rms_norm(x_MND, x_MND.shape[-1:], eps=eps) * weight_M1D


def layer_norm(x_MND, weight_MD, bias_MD, eps: float) -> torch.Tensor:
    """Rows of mean 0 and variance 1, times each member's own weights, plus its own bias."""
    normal_MND = functional.layer_norm(x_MND, x_MND.shape[-1:], eps=eps)
    return torch.addcmul(bias_MD.unsqueeze(1), normal_MND, weight_MD.unsqueeze(1))


def gated(gate, up, activation: str) -> torch.Tensor:
    """The activation of one half of a gated feed-forward layer times the other half."""
    return ACTIVATIONS[activation](gate) * up


def activate(x, activation: str) -> torch.Tensor:
    return ACTIVATIONS[activation](x)


def gated_feed_forward(x_MNI, gate_MFI, up_MFI, down_MOF, activation: str) -> torch.Tensor:
    """[M, N, O]: the activation of one linear layer, times a second, through a third."""
    inner_MNF = gated(linear(x_MNI, gate_MFI), linear(x_MNI, up_MFI), activation)
    return linear(inner_MNF, down_MOF)


def feed_forward(x_MNI, up_MFI, up_MF, down_MOF, down_MO, activation: str) -> torch.Tensor:
    """[M, N, O]: the activation of one linear layer through a second, both with biases."""
    return linear(activate(linear(x_MNI, up_MFI, up_MF), activation), down_MOF, down_MO)


def attention(query_SHTd, key_SHTd, value_SHTd, scaling: float, softcap: float | None = None):
    """Causal self-attention [S, T, H, d] of S strings; scores are capped if `softcap` is given."""
    if softcap is None:
        out = functional.scaled_dot_product_attention(
            query_SHTd, key_SHTd, value_SHTd, is_causal=True, scale=scaling
        )
        return out.transpose(1, 2).contiguous()
    scores_SHTT = torch.matmul(query_SHTd, key_SHTd.transpose(2, 3)) * scaling
    scores_SHTT = softcap * torch.tanh(scores_SHTT / softcap)
    length = scores_SHTT.shape[-1]
    later_TT = torch.ones(length, length, dtype=torch.bool, device=scores_SHTT.device).triu(1)
    weights_SHTT = scores_SHTT.masked_fill(later_TT, float("-inf")).softmax(-1)
    return torch.matmul(weights_SHTT, value_SHTd).transpose(1, 2).contiguous()


def apply_rotary(query_SHTd, key_SHTd, cos_Td, sin_Td) -> tuple[torch.Tensor, torch.Tensor]:
    """Queries and keys, with their first features rotated: as many features as `cos_Td` has."""
    return _rotated(query_SHTd, cos_Td, sin_Td), _rotated(key_SHTd, cos_Td, sin_Td)


def _rotated(x_SHTd, cos_Td, sin_Td) -> torch.Tensor:
    turned, kept = x_SHTd.tensor_split([cos_Td.shape[-1]], dim=-1)
    first, second = turned.chunk(2, dim=-1)
    half = torch.cat([-second, first], dim=-1)
    return torch.cat([turned * cos_Td + half * sin_Td, kept], dim=-1)


def token_nll(logits_NV, targets_N, ignored: int) -> torch.Tensor:
    """float[N]: nll of each target in nats; 0 for ignored targets."""
    return functional.cross_entropy(logits_NV, targets_N, ignore_index=ignored, reduction="none")


def flat(tensors) -> torch.Tensor:
    """[M, P] of tensors [M, ...], one after another."""
    return torch.cat([x.flatten(1) for x in tensors], dim=1)


@torch.no_grad()
def adamw_(
    theta_MP,
    grad_MP,
    first_MP,
    second_MP,
    rate_M,
    step_M,
    beta1: float,
    beta2: float,
    eps: float,
    weight_decay: float,
    clipping: float,
) -> None:
    """One step of AdamW for every member, in place; each member's gradient is clipped separately.

    `rate_M` holds the members' learning rates. `step_M` counts their steps from 1. The arithmetic
    is the same as in torch.nn.utils.clip_grad_norm_ followed by torch.optim.AdamW.
    """
    norm_M = torch.linalg.vector_norm(grad_MP, dim=1)
    grad_MP = grad_MP * (clipping / (norm_M + 1e-6)).clamp(max=1.0).unsqueeze(1)
    rate_M, step_M = rate_M.double(), step_M.double()
    theta_MP.mul_((1 - rate_M * weight_decay).float().unsqueeze(1))
    first_MP.lerp_(grad_MP, 1 - beta1)
    second_MP.mul_(beta2).addcmul_(grad_MP, grad_MP, value=1 - beta2)
    scale_M = (1 - beta2**step_M).sqrt().float()
    length_M = (rate_M / (1 - beta1**step_M)).float()
    denominator_MP = (second_MP.sqrt() / scale_M.unsqueeze(1)).add_(eps)
    theta_MP.sub_(length_M.unsqueeze(1) * first_MP / denominator_MP)
