"""Evaluation: how well models predict every string. These are the numbers of a trace."""

from collections.abc import Callable, Sequence

import numpy as np
import torch

from palimpsest.training.batches import IGNORED, Batch, TokenisedStrings, by_length


def measure_batch(
    logits_BTV: torch.Tensor, targets_BT: torch.Tensor, by_token: bool = False
) -> torch.Tensor:
    """float64[3, B]: nll in nats, number of right tokens, sum of the true tokens' ranks.

    The rank of a token is one more than the number of tokens with a larger logit, so the best is 1.
    With `by_token`, T rows follow: the nll of each token, 0 where there is none.
    """
    n_tokens = tokens_at_once(logits_BTV)
    pieces = logits_BTV.flatten(0, 1).split(n_tokens), targets_BT.flatten().split(n_tokens)
    of_pieces = [_measure_tokens(*piece) for piece in zip(*pieces, strict=True)]
    of_tokens = torch.cat(of_pieces, dim=1).unflatten(1, targets_BT.shape)
    of_tokens *= targets_BT != IGNORED
    # A cumulative sum adds token by token, so padding after a string does not change its sum, not
    # even in the last bit.
    sums = of_tokens.cumsum(-1)[..., -1]
    return torch.cat([sums, of_tokens[0].T]) if by_token else sums


def tokens_at_once(logits_BTV: torch.Tensor) -> int:
    most = LOGITS_AT_ONCE_ON_CPU if logits_BTV.device.type == "cpu" else LOGITS_AT_ONCE
    return max(1, most // logits_BTV.shape[-1])


def _measure_tokens(logits_NV: torch.Tensor, targets_N: torch.Tensor) -> torch.Tensor:
    """float64[3, N]: nll, whether the token is right, and rank, of single tokens."""
    index_N1 = targets_N.clamp(min=0).unsqueeze(-1)
    logits_NV = logits_NV.float()
    true_N1 = logits_NV.gather(-1, index_N1)
    # For a nearly certain token, `total` is 1 plus a tiny sum, and the nll is this tiny sum; in
    # float32 the 1 would swallow the sum.
    largest_N1 = logits_NV.amax(-1, keepdim=True)
    total_N = (logits_NV - largest_N1).exp().sum(-1, dtype=torch.float64)
    nll_N = total_N.log() + (largest_N1.double() - true_N1.double()).squeeze(-1)
    hit_N = logits_NV.argmax(-1) == index_N1.squeeze(-1)
    rank_N = (logits_NV > true_N1).sum(-1) + 1
    return torch.stack([nll_N, hit_N.double(), rank_N.double()])


# Number of strings (of all models) per forward pass when measuring on a CPU: few fit its caches.
MEASURED_ON_CPU = 64

# Logits that are measured together: on a CPU few, so that they stay in its caches (five times as
# fast with 49,152 tokens in the vocabulary), on a GPU many, but not a second copy of a whole batch.
LOGITS_AT_ONCE_ON_CPU = 2**19
LOGITS_AT_ONCE = 2**27

# Rows of every measurement; the losses of single tokens, if they are kept, follow these rows.
SUMS = 3

# Maps rows int[M, B] to logits [M, B, T, V] and true tokens int[M, B, T]
Predict = Callable[[np.ndarray], tuple[torch.Tensor, torch.Tensor]]


@torch.no_grad()
def measure(
    plans: Sequence[Sequence[np.ndarray]],
    n_strings: Sequence[int],
    predict: Predict,
    width: int | None = None,
    n_rows: Sequence[int] | None = None,
) -> list[np.ndarray]:
    """Nll, number of right tokens and rank sum, float64[3, strings] for each of M models.

    With `n_rows`, the rows after these three are the losses of the first tokens.

    Parameters
    ----------
    plans : for each model, the rows of its strings in every forward pass; all models make a pass
        together
    n_strings : the number of strings of each model; the results of strings in no pass are 0
    predict : the models' forward pass; a row of -1 means no string
    width : strings per model in each pass; by default the largest number in that pass
    n_rows : the number of rows of each model's result; by default 3
    """
    n_rows = n_rows or [SUMS] * len(plans)
    results = [np.zeros((kept, n)) for kept, n in zip(n_rows, n_strings, strict=True)]
    for place in range(max(map(len, plans))):
        of_pass = [plan[place] if place < len(plan) else [] for plan in plans]
        rows_MB = np.full((len(plans), width or max(map(len, of_pass))), -1)
        for filled, rows in zip(rows_MB, of_pass, strict=True):
            filled[: len(rows)] = rows
        logits_MBTV, targets_MBT = predict(rows_MB)
        logits, targets = logits_MBTV.flatten(0, 1), targets_MBT.flatten(0, 1)
        measured = measure_batch(logits, targets, by_token=max(n_rows) > SUMS)
        measured = measured.cpu().numpy().reshape(-1, *rows_MB.shape)
        for model, rows in enumerate(rows_MB):
            # A pass is as long as its longest string, of any model.
            kept, real = min(n_rows[model], len(measured)), rows >= 0
            results[model][:kept, rows[real]] = measured[:kept, model, real]
    return results


def strings_at_once(asked: int, device: torch.device, n_models: int) -> int:
    """Strings per forward pass of each model: `asked` strings, but often fewer on a CPU."""
    return asked if device.type != "cpu" else min(asked, -(-MEASURED_ON_CPU // n_models))


def evaluate(
    model,
    strings: TokenisedStrings,
    rows: np.ndarray,
    batch_size: int,
    device: torch.device,
    processes=None,
    n_rows: int = SUMS,
):
    """float64[3, strings]: nll, number of right tokens and rank sum of the strings in some rows.

    All other strings are 0. Each string is measured once, in batches of similar length. If several
    processes share the work, `processes` is (rank, number of processes), and each process returns
    the whole result. With `n_rows` above three, the other numbers are the losses of the first
    tokens.
    """
    rank, count = processes or (0, 1)

    def of_rows(rows_MB: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
        batch = strings.batch(rows_MB[0], device)
        return predict(model, batch).unsqueeze(0), batch.targets_BT.unsqueeze(0)

    plan = by_length(strings.lengths, rows, batch_size, count)[rank::count]
    model.eval()
    (result,) = measure([plan], [len(strings.lengths)], of_rows, n_rows=[n_rows])
    model.train()
    return _merge(result, device) if count > 1 else result


def predict(model, batch: Batch) -> torch.Tensor:
    """Logits [B, T, V] of the next token at every position."""
    return model(input_ids=batch.ids_BT, attention_mask=batch.mask_BT, use_cache=False).logits


def _merge(result: np.ndarray, device: torch.device) -> np.ndarray:
    """Combine the results of all processes; a string that a process did not measure is 0 there."""
    merged = torch.from_numpy(result).to(device)
    torch.distributed.all_reduce(merged, op=torch.distributed.ReduceOp.MAX)
    return merged.cpu().numpy()


def summarise(measured: np.ndarray, counts: np.ndarray, n_tokens: np.ndarray) -> float:
    """Loss in nats per token over a multiset of strings; NaN if the multiset is empty."""
    total = (counts * n_tokens).sum()
    return float((counts * measured[0]).sum() / total) if total else float("nan")
