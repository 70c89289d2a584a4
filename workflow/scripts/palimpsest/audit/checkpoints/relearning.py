"""Training on a part of the forget records again, to see whether the others come back.

If unlearning only hid what a model knows, then a few steps bring back records that are not trained
on again, too; of retrained models, they do not.
"""

from __future__ import annotations

import numpy as np
import torch

from palimpsest.errors import UserError
from palimpsest.models.checkpoints import Checkpoint
from palimpsest.training.batches import IGNORED, TokenisedStrings, by_length
from palimpsest.training.evaluation import predict

SEED = 0  # of the groups; the same for all models


def half_of_groups(group: np.ndarray) -> np.ndarray:
    """bool[records]: the records of one half of the groups, drawn at random.

    Raises `UserError` if there is one group only.
    """
    names = np.unique(group.astype(str))
    if len(names) < 2:
        raise UserError(
            "audit/checkpoints: relearning trains on one half of the groups of forget records, and "
            "asks about the other half, but all are of one group; leave relearn_steps out"
        )
    drawn = np.random.default_rng(SEED).permutation(names)[: len(names) // 2]
    return np.isin(group.astype(str), drawn)


def relearn(
    checkpoint: Checkpoint, strings: TokenisedStrings, steps: int, rate: float, batch_size: int
) -> None:
    """Train the model on some strings, in place: AdamW, all strings in every step, no dropout."""
    model, rows = checkpoint.model, np.arange(len(strings.lengths))
    optimiser = torch.optim.AdamW(model.parameters(), rate, weight_decay=0.0)
    n_tokens = int(strings.n_tokens.sum())
    for _ in range(steps):
        optimiser.zero_grad()
        for batch_rows in by_length(strings.lengths, rows, batch_size, 1):
            batch = strings.batch(batch_rows, checkpoint.device)
            logits_BVT = predict(model, batch).transpose(1, 2)
            loss = torch.nn.functional.cross_entropy(
                logits_BVT, batch.targets_BT, ignore_index=IGNORED, reduction="sum"
            )
            (loss / n_tokens).backward()
        optimiser.step()
    optimiser.zero_grad()
