"""What a model writes, greedily or at temperature 1, by its probabilities and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from transformers import GenerationConfig

from palimpsest.models.checkpoints import Checkpoint

NO_TOKEN = -1  # after the end of what a model writes


@torch.no_grad()
def decoded(
    checkpoint: Checkpoint,
    ids: np.ndarray,
    n_new: int,
    mask: np.ndarray | None = None,
    *,
    is_drawn: bool = False,
) -> np.ndarray:
    """int64[prompts, n_new]: the tokens after some prompts, `NO_TOKEN` from an end token on.

    A folder's `generation_config.json` can have a penalty for repetitions, a least number of
    tokens or a temperature. Only its end tokens are used here.

    Parameters
    ----------
    ids : int[prompts, tokens]
    mask : likewise, 0 where a prompt is filled up on its left; None: all prompts are equally long
    is_drawn : each token is drawn with its probability; else it is the most probable one
    """
    ends = end_tokens(checkpoint)
    how = {"do_sample": True, "temperature": 1.0, "top_k": 0, "top_p": 1.0} if is_drawn else {}
    settings = GenerationConfig(
        max_new_tokens=n_new, eos_token_id=ends or None, pad_token_id=0, num_beams=1, **how
    )
    given = torch.from_numpy(np.ascontiguousarray(ids)).to(checkpoint.device)
    read = torch.ones_like(given) if mask is None else torch.from_numpy(mask).to(checkpoint.device)
    with _without_settings(checkpoint.model):
        whole = checkpoint.model.generate(given, settings, attention_mask=read)
    made = whole[:, ids.shape[1] :].cpu().numpy()
    tokens = np.full((len(ids), n_new), NO_TOKEN)
    is_before_end = ~np.logical_or.accumulate(np.isin(made, ends), axis=1)
    tokens[:, : made.shape[1]] = np.where(is_before_end, made, NO_TOKEN)
    return tokens


def text_of(checkpoint: Checkpoint, tokens: np.ndarray, **options) -> str:
    """One row of `decoded` as text; `options` are those of the tokenizer."""
    return checkpoint.tokenizer.decode(tokens[tokens != NO_TOKEN], **options)


def end_tokens(checkpoint: Checkpoint) -> list[int]:
    """The tokens that end a text: those of the model's folder, and the tokenizer's end token."""
    known = checkpoint.model.generation_config.eos_token_id
    known = known if isinstance(known, list) else [known]
    return sorted({*known, checkpoint.tokenizer.eos_token_id} - {None})


@contextmanager
def _without_settings(model: torch.nn.Module) -> Iterator[None]:
    """Without what transformers takes from the model's folder where a call leaves it open."""
    of_folder = model.generation_config
    model.generation_config = GenerationConfig()
    try:
        yield
    finally:
        model.generation_config = of_folder
