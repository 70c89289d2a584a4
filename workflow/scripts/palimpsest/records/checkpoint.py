"""Losses of records under models that are only asked: nothing is trained."""

from __future__ import annotations

import math
import os
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils.logging import disable_progress_bar

from palimpsest.corpora.records import Records
from palimpsest.errors import Notice, UserError
from palimpsest.models.build import loading_in_one_line
from palimpsest.models.folders import SAVE_AGAIN
from palimpsest.models.limits import Limits
from palimpsest.records.losses import Losses
from palimpsest.training.evaluation import evaluate
from palimpsest.training.texts import encode_texts

if not torch.cuda.is_available():
    # DeepSpeed, which transformers imports, would look for a GPU and print that there is none.
    os.environ.setdefault("DS_ACCELERATOR", "cpu")

BITS, NATS = "bits per byte", "nats per token"
TOO_LONG = "cut the records into windows: the key window of the corpus, or records.in_windows"
REMEDY = (
    "name a folder with config.json, the tokenizer and *.safetensors, or a model of the Hugging "
    "Face hub to which you have access"
)
NEAR = 0.01  # relative difference of losses of a model in two number formats
AT_ONCE = 16  # records per forward pass


class Measured(NamedTuple):
    """What one model says of records: nll float64[records] in nats, n_tokens int64[records]."""

    nll: np.ndarray
    n_tokens: np.ndarray


def measure(
    records: Records,
    model: str | Path,
    reference: str | Path | None = None,
    *,
    unit: str = BITS,
    batch_size: int = AT_ONCE,
) -> Losses:
    """The losses of records under a model, and under another one, for `answers`.

    Every token of a text is predicted, and none of its prompt, after the start token of the model's
    own tokenizer (its end token, if it has none for the start); the end of a text is not. Weights
    are read from safetensors in float32, and code that comes with a model is never run.

    Parameters
    ----------
    records : what `read_records` returns
    model, reference : folders as `save_pretrained` leaves them, of the model and its tokenizer; or
        names on the Hugging Face hub
    unit : "bits per byte" of the text in UTF-8, which models with other tokens can share; or "nats
        per token", for which both models must have the same tokens
    batch_size : records per forward pass; smaller saves memory, and changes no result beyond
        rounding

    Raises `UserError` if a model cannot be loaded or lacks a weight, if a text is too long for it
    or has no token, or if the two models are one.
    """
    if unit not in (BITS, NATS):
        raise ValueError(f"unknown unit {unit!r}; known: {BITS}, {NATS}")
    own = losses_under(records, model, batch_size)
    other = None if reference is None else losses_under(records, reference, batch_size)
    if other is not None and np.array_equal(own.nll, other.nll):
        raise UserError(
            f"{reference}: gives every record the same loss as {model}; they are one model under "
            "two names: name another reference"
        )
    if other is not None and np.allclose(own.nll, other.nll, rtol=NEAR):
        warnings.warn(
            Notice(
                f"{reference}: gives every record nearly the same loss as {model}; if it is the "
                "same model in another number format, name another reference"
            ),
            stacklevel=2,
        )
    if other is not None and unit == NATS and not np.array_equal(own.n_tokens, other.n_tokens):
        raise UserError(
            f"{reference}: cuts the records into other tokens than {model}, so losses per token "
            f"cannot be compared; measure in {BITS}"
        )
    loss, of_reference = (
        None if found is None else _in_unit(found, records, unit)[None] for found in (own, other)
    )
    return Losses(
        records.ids,
        np.zeros(1),
        loss,
        None,
        of_reference,
        records.trained,
        records.groups,
        records.source,
    )


def _in_unit(found: Measured, records: Records, unit: str) -> np.ndarray:
    if unit == NATS:
        return found.nll / found.n_tokens
    n_bytes = np.array([len(text.encode()) for text in records.texts])
    return found.nll / math.log(2) / n_bytes


def losses_under(records: Records, model: str | Path, batch_size: int = AT_ONCE) -> Measured:
    """The nll of every record under one model, see `measure`."""
    name = str(model)
    disable_progress_bar()
    with loading_in_one_line(f"{name}: cannot be loaded", name, REMEDY):
        tokenizer = AutoTokenizer.from_pretrained(name, trust_remote_code=False)
        loaded, about = AutoModelForCausalLM.from_pretrained(
            name,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
    _check_whole(name, loaded, about["missing_keys"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loaded = loaded.to(device)
    most = Limits.of_config(loaded.config)
    texts, prompts = records.whole_texts, records.prompt_letters
    encoded = encode_texts(name, tokenizer, most, texts, "record", TOO_LONG, prompts)
    nll = evaluate(loaded, encoded, np.arange(len(records.texts)), batch_size, device)[0]
    if not np.isfinite(nll).all():
        text = records.ids[int((~np.isfinite(nll)).argmax())]
        raise UserError(f"{name}: the loss of the record {text!r} is not a number; {SAVE_AGAIN}")
    return Measured(nll, encoded.n_tokens)


def _check_whole(name: str, model, missing: list[str]) -> None:
    """Raise `UserError` if a weight was not in the files, so that it is random or nowhere."""
    nowhere = [key for key, weight in model.named_parameters() if weight.is_meta]
    if lacking := [*sorted(missing), *nowhere]:
        raise UserError(
            f"{name}: its files have no weight {lacking[0]!r}"
            + (f" and {len(lacking) - 1} more" if len(lacking) > 1 else "")
            + f", so its answers would be random; {SAVE_AGAIN}"
        )
