"""Greedy answers of a model to prompts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from palimpsest.audit.decoding import decoded, text_of
from palimpsest.models.checkpoints import Checkpoint
from palimpsest.training.batches import by_length


def greedy_answers(
    checkpoint: Checkpoint, prompts: Sequence[list[int]], most: int, batch_size: int
) -> list[str]:
    """How the model answers some prompts, given as tokens: up to its end token, as text.

    An answer has at most `most` tokens, and fewer if the model takes no more. open-unlearning
    decodes in the same way, but for the settings in a folder's `generation_config.json`, such as a
    penalty for repetitions, which it keeps: see `decoded`.
    """
    tokenizer, positions = checkpoint.tokenizer, checkpoint.limits.positions
    lengths = np.array([len(prompt) for prompt in prompts])
    texts = {}
    for batch in by_length(lengths, np.arange(len(prompts)), batch_size, 1):
        longest = int(lengths[batch].max())
        ids = np.full((len(batch), longest), tokenizer.eos_token_id)
        mask = np.zeros((len(batch), longest), dtype=int)
        for place, row in enumerate(batch):  # padded before the prompt, so that all end together
            ids[place, longest - lengths[row] :] = prompts[row]
            mask[place, longest - lengths[row] :] = 1
        n_new = most if positions is None else min(most, max(1, positions - longest))
        for row, tokens in zip(batch, decoded(checkpoint, ids, n_new, mask), strict=True):
            texts[row] = text_of(checkpoint, tokens, skip_special_tokens=True)
    return [texts[row] for row in range(len(prompts))]
