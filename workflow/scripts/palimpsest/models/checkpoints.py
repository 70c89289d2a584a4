"""Models that others trained: opened as they are, and only asked."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from palimpsest.arguments import Made
from palimpsest.errors import UserError
from palimpsest.models.answers import NOT_KEPT, NotKept, OfModel
from palimpsest.models.build import loading_in_one_line
from palimpsest.models.folders import SAVE_AGAIN, check_tokenizer, is_folder
from palimpsest.models.limits import Limits

if not torch.cuda.is_available():
    # DeepSpeed, which transformers imports, would look for a GPU and print that there is none.
    os.environ.setdefault("DS_ACCELERATOR", "cpu")

REMEDY = (
    "name a folder with config.json, the tokenizer and *.safetensors, or a model of the Hugging "
    "Face hub to which you have access"
)


@dataclass(frozen=True)
class Checkpoint:
    """A causal language model in float32, its tokenizer and its limits; `name` is for messages.

    `answers` are those that it gave before, if they are kept.
    """

    name: str
    model: torch.nn.Module
    tokenizer: PreTrainedTokenizerBase
    limits: Limits
    device: torch.device
    answers: OfModel | NotKept = NOT_KEPT


CHECKPOINT = Made(Checkpoint, "models.checkpoints.opened(folder)")


def opened(model: str | Path) -> Checkpoint:
    """A model and its tokenizer from a folder, as `save_pretrained` leaves it, or from the hub.

    A branch, tag or commit of a model on the hub follows after an `@`: `owner/name@v1`.

    Weights are read from safetensors, and code that comes with a model is never run. Raises
    `UserError` if it cannot be loaded or lacks a weight.
    """
    name = str(model)
    source, revision = _source(name)
    if Path(name).is_dir():
        check_tokenizer(name)
    with loading_in_one_line(f"{name}: cannot be loaded", name, REMEDY):
        tokenizer = AutoTokenizer.from_pretrained(
            source, revision=revision, trust_remote_code=False
        )
    found = weights(name)
    return Checkpoint(name, found.model, tokenizer, found.limits, found.device)


@dataclass(frozen=True)
class Weights:
    """A causal language model in float32 and its limits, without a tokenizer."""

    model: torch.nn.Module
    limits: Limits
    device: torch.device


def weights(name: str) -> Weights:
    """The model of a checkpoint, whose folder may have no tokenizer. See `opened`."""
    source, revision = _source(name)
    disable_progress_bar()
    with loading_in_one_line(f"{name}: cannot be loaded", name, REMEDY):
        loaded, about = AutoModelForCausalLM.from_pretrained(
            source,
            revision=revision,
            use_safetensors=True,
            trust_remote_code=False,
            dtype=torch.float32,
            output_loading_info=True,
        )
    _check_whole(name, loaded, about["missing_keys"])
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    return Weights(loaded.to(device).eval(), Limits.of_config(loaded.config), device)


def _source(name: str) -> tuple[str, str | None]:
    return (name, None) if is_folder(name) else _on_the_hub(name)


def _on_the_hub(name: str) -> tuple[str, str | None]:
    """The name of a model, and its revision, if there is one."""
    source, _, revision = name.partition("@")
    return source, revision or None


def _check_whole(name: str, model, missing: list[str]) -> None:
    """Raise `UserError` if a weight was not in the files, so that it is random or nowhere."""
    nowhere = [key for key, weight in model.named_parameters() if weight.is_meta]
    if lacking := [*sorted(missing), *nowhere]:
        raise UserError(
            f"{name}: its files have no weight {lacking[0]!r}"
            + (f" and {len(lacking) - 1} more" if len(lacking) > 1 else "")
            + f", so its answers would be random; {SAVE_AGAIN}"
        )
