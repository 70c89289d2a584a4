"""Free generations: what a model writes when it is given its start token alone."""

from __future__ import annotations

import numpy as np
import torch

from palimpsest.allowed import SEEDS, WHOLE
from palimpsest.arguments import takes
from palimpsest.audit.decoding import decoded, text_of
from palimpsest.models.checkpoints import CHECKPOINT, Checkpoint
from palimpsest.training.texts import encode_records

AT_ONCE = 256  # samples per batch


@takes(checkpoint=CHECKPOINT, n=WHOLE, n_tokens=WHOLE, seed=SEEDS)
def free_generations(
    checkpoint: Checkpoint, n: int, n_tokens: int, seed: int = 0, batch_size: int = AT_ONCE
) -> list[str]:
    """`n` texts that a model draws at temperature 1, after its start token alone.

    A text has up to `n_tokens` tokens: it ends where the model ends it.
    """
    torch.manual_seed(seed)
    start = encode_records(checkpoint, ["a"], None)
    first = start.ids[:1, : int(np.ravel(start.contexts)[0])]
    texts: list[str] = []
    while len(texts) < n:
        prompts = first.repeat(min(batch_size, n - len(texts)), axis=0)
        made = decoded(checkpoint, prompts, n_tokens, is_drawn=True)
        texts += [text_of(checkpoint, tokens) for tokens in made]
    return texts
