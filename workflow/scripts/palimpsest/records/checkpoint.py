"""Losses of records under models that are only asked: nothing is trained."""

from __future__ import annotations

import math
import warnings
from pathlib import Path
from typing import NamedTuple

import numpy as np

from palimpsest.arguments import PATH, takes
from palimpsest.corpora.records import RECORDS, Records
from palimpsest.errors import Notice, UserError
from palimpsest.models.checkpoints import opened
from palimpsest.models.folders import SAVE_AGAIN
from palimpsest.records.losses import NATS, Losses
from palimpsest.training.evaluation import evaluate
from palimpsest.training.texts import encode_records

BITS = "bits per byte"
NEAR = 0.01  # relative difference of losses of a model in two number formats
AT_ONCE = 16  # records per forward pass


class Measured(NamedTuple):
    """What one model says of records: nll float64[records] in nats, n_tokens int64[records]."""

    nll: np.ndarray
    n_tokens: np.ndarray


@takes(records=RECORDS, model=PATH, reference=PATH)
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
            stacklevel=3,
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
        unit,
    )


def _in_unit(found: Measured, records: Records, unit: str) -> np.ndarray:
    if unit == NATS:
        return found.nll / found.n_tokens
    n_bytes = np.array([len(text.encode()) for text in records.texts])
    return found.nll / math.log(2) / n_bytes


def losses_under(records: Records, model: str | Path, batch_size: int = AT_ONCE) -> Measured:
    """The nll of every record under one model, see `measure`."""
    checkpoint = opened(model)
    name = checkpoint.name
    texts, prompts = records.whole_texts, records.prompt_letters
    encoded = encode_records(checkpoint, texts, prompts)
    rows = np.arange(len(records.texts))
    nll = evaluate(checkpoint.model, encoded, rows, batch_size, checkpoint.device)[0]
    if not np.isfinite(nll).all():
        text = records.ids[int((~np.isfinite(nll)).argmax())]
        raise UserError(f"{name}: the loss of the record {text!r} is not a number; {SAVE_AGAIN}")
    return Measured(nll, encoded.n_tokens)
