"""How well models predict every string: the numbers of a trace."""

from collections.abc import Callable, Sequence

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


# Strings of all models per forward pass when measuring on a CPU: few keep to its caches.
MEASURED_ON_CPU = 64

# From rows int[M, B] to logits [M, B, T, V] and the true tokens int[M, B, T]
Predict = Callable[[np.ndarray], tuple[torch.Tensor, torch.Tensor]]


@torch.no_grad()
def measure(
    plans: Sequence[Sequence[np.ndarray]],
    n_strings: Sequence[int],
    predict: Predict,
    width: int | None = None,
) -> list[np.ndarray]:
    """Nll, right tokens and rank sum float64[3, strings] of each of M models.

    Parameters
    ----------
    plans : for each model, the rows of its strings in every forward pass; all models make the same
        pass together
    n_strings : how many strings each model has; those of no pass are left at 0
    predict : what the models make of one pass. A row of -1 stands for no string.
    width : strings per model in each pass, by default as many as the longest of its plans has
    """
    results = [np.zeros((3, n)) for n in n_strings]
    for place in range(max(map(len, plans))):
        of_pass = [plan[place] if place < len(plan) else [] for plan in plans]
        rows_MB = np.full((len(plans), width or max(map(len, of_pass))), -1)
        for filled, rows in zip(rows_MB, of_pass, strict=True):
            filled[: len(rows)] = rows
        logits_MBTV, targets_MBT = predict(rows_MB)
        measured = measure_batch(logits_MBTV.flatten(0, 1), targets_MBT.flatten(0, 1))
        measured = measured.cpu().numpy().reshape(3, *rows_MB.shape)
        for model, rows in enumerate(rows_MB):
            real = rows >= 0
            results[model][:, rows[real]] = measured[:, model, real]
    return results


def strings_at_once(asked: int, device: torch.device, n_models: int) -> int:
    """Strings of each of some models per forward pass: as asked for, on a CPU often fewer."""
    return asked if device.type != "cpu" else min(asked, -(-MEASURED_ON_CPU // n_models))


def evaluate(
    model, strings: TokenisedStrings, batch_size: int, device: torch.device, processes=None
):
    """float64[3, strings]: nll, right tokens and rank sum of every string under the model.

    Each distinct string is measured once, in batches of similar length. `processes` is a pair
    (rank, number of processes) when several share the work; every one returns the whole result.
    """
    rank, count = processes or (0, 1)

    def of_rows(rows_MB: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        batch = strings.batch(rows_MB[0], device)
        return predict(model, batch).unsqueeze(0), batch.targets_BT.unsqueeze(0)

    plan = by_length(strings.lengths, batch_size, count)[rank::count]
    model.eval()
    (result,) = measure([plan], [len(strings.lengths)], of_rows)
    model.train()
    return _merge(result, device) if count > 1 else result


def predict(model, batch: Batch) -> torch.Tensor:
    """Logits [B, T, V] of the next token at every position."""
    return model(input_ids=batch.ids_BT, attention_mask=batch.mask_BT, use_cache=False).logits


def _merge(result: np.ndarray, device: torch.device) -> np.ndarray:
    """Combine what the processes measured: every string was measured somewhere, unmeasured is 0."""
    merged = torch.from_numpy(result).to(device)
    torch.distributed.all_reduce(merged, op=torch.distributed.ReduceOp.MAX)
    return merged.cpu().numpy()


def summarise(measured: np.ndarray, counts: np.ndarray, n_tokens: np.ndarray) -> float:
    """Loss in nats per token over a multiset of the strings; NaN if it is empty."""
    total = (counts * n_tokens).sum()
    return float((counts * measured[0]).sum() / total) if total else float("nan")
