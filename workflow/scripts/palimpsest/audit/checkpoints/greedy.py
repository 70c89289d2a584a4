"""Greedy answers of a model to prompts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from palimpsest.models.checkpoints import Checkpoint
from palimpsest.training.batches import by_length


@torch.no_grad()
def greedy_answers(
    checkpoint: Checkpoint, prompts: Sequence[list[int]], most: int, batch_size: int
) -> list[str]:
    """How the model answers some prompts, given as tokens: up to its end token, as text.

    An answer has at most `most` tokens, and fewer if the model takes no more.
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
        made = checkpoint.model.generate(
            torch.from_numpy(ids).to(checkpoint.device),
            attention_mask=torch.from_numpy(mask).to(checkpoint.device),
            do_sample=False,
            num_beams=1,
            temperature=None,
            top_p=None,
            top_k=None,
            max_new_tokens=most if positions is None else min(most, max(1, positions - longest)),
            eos_token_id=_ends(checkpoint),
            pad_token_id=tokenizer.eos_token_id,
        )[:, longest:]
        found = tokenizer.batch_decode(made, skip_special_tokens=True)
        texts |= zip(batch.tolist(), found, strict=True)
    return [texts[row] for row in range(len(prompts))]


def _ends(checkpoint: Checkpoint) -> list[int]:
    """The tokens that end an answer: those of the model's folder, and the tokenizer's end token."""
    known = checkpoint.model.generation_config.eos_token_id
    known = known if isinstance(known, list) else [known]
    return [*{*filter(lambda token: token is not None, known), checkpoint.tokenizer.eos_token_id}]
