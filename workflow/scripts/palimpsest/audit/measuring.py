"""One forward pass of a model over some texts, with all that attacks read from it."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy

import numpy as np
import torch
from transformers import Cache

from palimpsest.arguments import Texts, Wholes, takes
from palimpsest.audit.passes import Pass
from palimpsest.errors import UserError
from palimpsest.models.build import TextTokens
from palimpsest.models.checkpoints import CHECKPOINT, Checkpoint
from palimpsest.models.folders import SAVE_AGAIN
from palimpsest.training.batches import IGNORED, Batch, TokenisedStrings, by_length
from palimpsest.training.evaluation import tokens_at_once
from palimpsest.training.texts import encode_records

AT_ONCE = 16  # texts per forward pass
EVERY_TOKEN = "every token"  # what a model is asked about rows of tokens
SHARED = 32  # from this number of tokens on, a beginning that texts share is read once
NO_ENDS = "so the parts of a text cannot be told apart; choose another model"


@takes(checkpoint=CHECKPOINT, texts=Texts("texts"), prompts=Wholes("texts"))
def passed(
    checkpoint: Checkpoint,
    texts: Sequence[str],
    prompts: Sequence[int] | None = None,
    batch_size: int = AT_ONCE,
) -> Pass:
    """One forward pass over each text, after one start token.

    Parameters
    ----------
    prompts : the number of the first letters of each text that are its prompt: they are read, and
        not predicted
    batch_size : texts per forward pass

    Raises `UserError` if a text has no token, is too long for the model, or has a loss that is not
    a number.
    """
    return passed_tokens(
        checkpoint, texts, encode_records(checkpoint, texts, prompts), prompts, batch_size
    )


def passed_tokens(
    checkpoint: Checkpoint,
    texts: Sequence[str],
    encoded: TokenisedStrings,
    prompts: Sequence[int] | None,
    batch_size: int,
) -> Pass:
    """As `passed`, of texts whose tokens are known."""
    name = checkpoint.name
    tokens = TextTokens.of(name, checkpoint.tokenizer)
    found = measured_tokens(checkpoint, encoded, batch_size)
    letters = [0] * len(texts) if prompts is None else prompts
    ends = [
        np.array(of_text[-n:]) - before
        for of_text, n, before in zip(
            tokens.ends(texts, NO_ENDS), encoded.n_tokens, letters, strict=True
        )
    ]
    return Pass(encoded.n_tokens, *found, np.concatenate(ends).astype(float))


@torch.no_grad()
def measured_tokens(
    checkpoint: Checkpoint, encoded: TokenisedStrings, batch_size: int
) -> np.ndarray:
    """float64[4, tokens]: log probability, mean, deviation and rank of each predicted token.

    Raises `UserError` if one is not a number.
    """
    parts = checkpoint.answers.find(EVERY_TOKEN, encoded)
    unknown = np.setdiff1d(np.arange(len(encoded.lengths)), list(parts))
    for rows, n_shared in _alike(encoded, unknown):
        beginning = _beginning(checkpoint, encoded.ids[rows[0], :n_shared])
        for batch_rows in by_length(encoded.lengths, rows, batch_size, 1):
            batch = encoded.batch(batch_rows, checkpoint.device)
            logits_BTV, targets_BT = _predicted(checkpoint.model, batch, beginning, n_shared)
            real_BT = targets_BT != IGNORED
            of_tokens = of_batch(logits_BTV, targets_BT, real_BT)
            ends = np.cumsum(real_BT.sum(-1).cpu().numpy())[:-1]
            made = dict(zip(batch_rows, np.split(of_tokens, ends, axis=1), strict=True))
            checkpoint.answers.keep(EVERY_TOKEN, encoded, made)
            parts.update(made)
    found = np.concatenate([parts[row] for row in range(len(encoded.lengths))], axis=1)
    if not np.isfinite(found).all():
        raise UserError(f"{checkpoint.name}: a loss is not a number; {SAVE_AGAIN}")
    return found


def _alike(encoded: TokenisedStrings, rows: np.ndarray) -> list[tuple[np.ndarray, int]]:
    """Those of some rows that begin alike, with the number of these tokens, all in prompts."""
    n = int(np.min(encoded.contexts)) - 1
    if n < SHARED or not len(rows):
        return [(rows, 0)] * bool(len(rows))
    beginnings = encoded.ids[rows, :n]
    _, group, sizes = np.unique(beginnings, axis=0, return_inverse=True, return_counts=True)
    several = np.flatnonzero(sizes >= AT_ONCE)
    others = rows[~np.isin(group, several)]
    return [(rows[group == one], n) for one in several] + [(others, 0)] * bool(len(others))


def _beginning(checkpoint: Checkpoint, ids_T: np.ndarray) -> Cache | None:
    """What a model keeps of some tokens that many rows begin with, which it reads once."""
    if not len(ids_T):
        return None
    given = torch.from_numpy(ids_T)[None].to(checkpoint.device)
    return checkpoint.model(input_ids=given, use_cache=True, logits_to_keep=1).past_key_values


def _predicted(
    model: torch.nn.Module, batch: Batch, beginning: Cache | None, n_shared: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits [B, T, V] and true tokens [B, T] from the first place that any row predicts."""
    # A prompt needs no logits, which take much of the time of a model with a large vocabulary.
    first = int((batch.targets_BT != IGNORED).any(0).nonzero().min())
    n = batch.targets_BT.shape[1] - first
    cache = None
    if beginning is not None:
        cache = deepcopy(beginning)
        cache.batch_repeat_interleave(len(batch.ids_BT))
    logits_BTV = model(
        input_ids=batch.ids_BT[:, n_shared:],
        attention_mask=batch.mask_BT,
        past_key_values=cache,
        use_cache=cache is not None,
        logits_to_keep=n,
    ).logits
    return logits_BTV[:, -n:], batch.targets_BT[:, -n:]


def of_batch(
    logits_BTV: torch.Tensor, targets_BT: torch.Tensor, real_BT: torch.Tensor
) -> np.ndarray:
    """float64[4, tokens] of the predicted tokens of a batch, text after text."""
    logits_NV, targets_N = logits_BTV.flatten(0, 1), targets_BT.flatten()
    places = real_BT.flatten().nonzero().squeeze(-1).split(tokens_at_once(logits_BTV))
    parts = [_of_tokens(logits_NV[some], targets_N[some]) for some in places]
    return torch.cat(parts, dim=1).cpu().numpy()


def _of_tokens(logits_NV: torch.Tensor, targets_N: torch.Tensor) -> torch.Tensor:
    """float64[4, N]: log probability, mean, deviation and rank of single tokens.

    Sums are in float64 and over what is below the largest logit, so that they lose nothing where a
    token is nearly certain. Each line reads all logits once: this is what a pass costs beyond the
    model's own work.
    """
    logits_NV = logits_NV.float()
    true_N1 = logits_NV.gather(-1, targets_N.unsqueeze(-1))
    rank_N = (logits_NV > true_N1).sum(-1) + 1
    largest_N1 = logits_NV.amax(-1, keepdim=True)
    below_NV = logits_NV - largest_N1
    weight_NV = below_NV.exp()
    total_N = weight_NV.sum(-1, dtype=torch.float64)
    mean_N = weight_NV.mul_(below_NV).sum(-1, dtype=torch.float64) / total_N
    square_N = weight_NV.mul_(below_NV).sum(-1, dtype=torch.float64) / total_N
    deviation_N = (square_N - mean_N.square()).clamp(min=0).sqrt()
    true_N = (true_N1.double() - largest_N1.double()).squeeze(-1)
    norm_N = total_N.log()
    return torch.stack([true_N - norm_N, mean_N - norm_N, deviation_N, rank_N.double()])
