"""How well a model predicts every string: the numbers of a trace."""

import numpy as np
import torch

from palimpsest.training.batches import IGNORED, Batch, TokenisedStrings, by_length


def measure_batch(logits_BTV: torch.Tensor, targets_BT: torch.Tensor) -> torch.Tensor:
    """float64[3, B]: nll in nats, number of right tokens, sum of the true tokens' ranks.

    The rank of a token is one more than the number of tokens with a larger logit, so the best is 1.
    """
    predicted_BT = targets_BT != IGNORED
    index_BT1 = targets_BT.clamp(min=0).unsqueeze(-1)
    logits_BTV = logits_BTV.float()
    true_BT1 = logits_BTV.gather(-1, index_BT1)
    # Of a near-certain token, the nll is what the others add to 1: float32 would drown it in the 1.
    largest_BT1 = logits_BTV.amax(-1, keepdim=True)
    total_BT = (logits_BTV - largest_BT1).exp().sum(-1, dtype=torch.float64)
    nll_BT = total_BT.log() + (largest_BT1.double() - true_BT1.double()).squeeze(-1)
    hit_BT = logits_BTV.argmax(-1) == index_BT1.squeeze(-1)
    rank_BT = (logits_BTV > true_BT1).sum(-1) + 1
    # Added one by one, so that no padding behind a string changes the last bit of its sum.
    columns = [(x * predicted_BT).double().cumsum(-1)[..., -1] for x in (nll_BT, hit_BT, rank_BT)]
    return torch.stack(columns)


@torch.no_grad()
def evaluate(
    model, strings: TokenisedStrings, batch_size: int, device: torch.device, processes=None
):
    """float64[3, strings]: nll, right tokens and rank sum of every string under the model.

    Each distinct string is measured once, in batches of similar length. `processes` is a pair
    (rank, number of processes) when several share the work; every one returns the whole result.
    """
    rank, count = processes or (0, 1)
    result = torch.zeros((3, len(strings.lengths)), dtype=torch.float64)
    model.eval()
    for rows in by_length(strings.lengths, batch_size, count)[rank::count]:
        batch = strings.batch(rows, device)
        result[:, rows] = measure_batch(predict(model, batch), batch.targets_BT).cpu()
    model.train()
    if count > 1:
        result = _merge(result, device)
    return result.numpy()


def predict(model, batch: Batch) -> torch.Tensor:
    """Logits [B, T, V] of the next token at every position."""
    return model(input_ids=batch.ids_BT, attention_mask=batch.mask_BT, use_cache=False).logits


def _merge(result: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Combine what the processes measured: every string was measured somewhere, unmeasured is 0."""
    result = result.to(device)
    torch.distributed.all_reduce(result, op=torch.distributed.ReduceOp.MAX)
    return result.cpu()


def summarise(measured: np.ndarray, counts: np.ndarray, n_tokens: np.ndarray) -> float:
    """Loss in nats per token over a multiset of the strings; NaN if it is empty."""
    total = (counts * n_tokens).sum()
    return float((counts * measured[0]).sum() / total) if total else float("nan")
