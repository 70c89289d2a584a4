"""Models ready to train, and the token ids of a language's terminals.

The slow imports (torch, transformers) are in this file and not in `table.py`, because Snakemake
reads `table.py`.
"""

import contextlib
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel
from transformers.modeling_utils import set_zero3_state

from palimpsest.errors import UserError
from palimpsest.models.folders import check_folder
from palimpsest.models.limits import TWIN_POSITIONS, Limits
from palimpsest.models.table import Model
from palimpsest.models.tokens import Vocabulary, single_tokens

TWIN_SPECIALS = {"start": 0, "end": 1}
# Gemma 2 caps its attention logits; only the eager implementation supports this.
EAGER_ONLY = {"gemma2"}
REMOTE_CODE = "trust_remote_code"  # in the error for a model that exists only as code


@dataclass(frozen=True)
class Tokens:
    """Token ids of the terminals (in the order of the corpus' terminals), of start and of end."""

    terminals: tuple[int, ...]
    start: int
    end: int


def tokens(row: Model, scale: str, terminals: Sequence[str]) -> Tokens:
    """One token per terminal, from the model's tokenizer; a twin's vocabulary is the terminals.

    Raises `UserError` if the tokenizer splits a terminal, does not know it, takes it for a special
    token, or has one token for two terminals.
    """
    if scale == "twin":
        first = len(TWIN_SPECIALS)
        return Tokens(tuple(range(first, first + len(terminals))), **TWIN_SPECIALS)
    with plain_errors(row):
        tokenizer = AutoTokenizer.from_pretrained(
            row.id, revision=row.revision, trust_remote_code=False
        )
    return Tokens(
        single_tokens(row, terminals, Vocabulary.of_transformers(tokenizer)),
        start=_first_known(tokenizer, row, "bos_token_id", "eos_token_id"),
        end=_first_known(tokenizer, row, "eos_token_id"),
    )


def _first_known(tokenizer, row: Model, *names: str) -> int:
    for name in names:
        if getattr(tokenizer, name) is not None:
            return getattr(tokenizer, name)
    raise UserError(f"{row.model}: its tokenizer defines none of {', '.join(names)}")


@cache
def limits(row: Model, scale: str) -> Limits:
    """The limits of a model; a twin's vocabulary is made for its strings.

    Raises `UserError` if the configuration of a full model cannot be loaded.
    """
    if scale == "twin":
        return Limits(TWIN_POSITIONS, None)
    with plain_errors(row):
        config = AutoConfig.from_pretrained(row.id, revision=row.revision, trust_remote_code=False)
    return Limits.of_config(config)


def build(
    row: Model, scale: str, vocabulary: int, seed: int, dtype: torch.dtype
) -> PreTrainedModel:
    """The model to train: pretrained weights (`full`) or the shrunk architecture (`twin`).

    Weights are only read from safetensors, and code from the hub is never run. A twin's initial
    weights depend on the seed and on the model's name. Otherwise, with the same seed, twins of
    similar families (such as Mistral and Llama) would be the same network.
    """
    attention = "eager" if row.model_type in EAGER_ONLY else "sdpa"
    if scale == "twin":
        torch.manual_seed(_initial_seed(row, seed))
        config = twin_config(row, vocabulary)
        # With ZeRO 3, other weights would be drawn; building a twin needs no partitioning.
        with set_zero3_state():
            return AutoModelForCausalLM.from_config(
                config, attn_implementation=attention, dtype=dtype
            )
    with plain_errors(row):
        return AutoModelForCausalLM.from_pretrained(
            row.id,
            revision=row.revision,
            use_safetensors=True,
            trust_remote_code=False,
            attn_implementation=attention,
            dtype=dtype,
        )


def _initial_seed(row: Model, seed: int) -> int:
    name = zlib.crc32(row.model.encode())
    return int(np.random.SeedSequence([seed, name]).generate_state(1)[0])


def twin_config(row: Model, vocabulary: int):
    """The configuration of a model's twin: the model's class, with the twin's width and depth."""
    width = row.twin_hidden
    sizes = {
        "vocab_size": vocabulary,
        "hidden_size": width,
        "num_hidden_layers": row.twin_layers,
        "num_attention_heads": row.twin_heads,
        "num_key_value_heads": row.twin_heads,
        "head_dim": width // row.twin_heads,
        "query_pre_attn_scalar": width // row.twin_heads,
        "word_embed_proj_dim": width,
        "max_position_embeddings": TWIN_POSITIONS,
        "bos_token_id": TWIN_SPECIALS["start"],
        "eos_token_id": TWIN_SPECIALS["end"],
        "pad_token_id": TWIN_SPECIALS["end"],
        # Dropout would add noise to the losses of strings. Of the paper's models, only large ones
        # have dropout.
        "dropout": 0.0,
        "attention_dropout": 0.0,
        "hidden_dropout": 0.0,
        "use_cache": False,
    }
    try:
        config = AutoConfig.for_model(row.model_type)
    except ValueError:
        raise UserError(
            f"{row.model}: unknown model_type {row.model_type!r}; it must be one that transformers "
            "knows, such as llama, mistral, qwen2, gemma2, gemma3_text, gpt_neox or opt"
        ) from None
    feed_forward = "ffn_dim" if hasattr(config, "ffn_dim") else "intermediate_size"
    # Gated feed-forward layers have three matrices, others have two.
    gated = feed_forward == "intermediate_size" and hasattr(config, "rms_norm_eps")
    sizes[feed_forward] = width * 8 // 3 if gated else width * 4
    known = {name: value for name, value in sizes.items() if hasattr(config, name)}
    return AutoConfig.for_model(row.model_type, **known)


@contextlib.contextmanager
def plain_errors(row: Model) -> Iterator[None]:
    """Turn the errors of loading a model into one line with the remedy."""
    local = Path(row.id).is_dir()
    if local:
        check_folder(row)
    try:
        yield
    except (OSError, ValueError, ImportError, SafetensorError) as error:
        remedy = (
            "the folder must hold config.json, the tokenizer and *.safetensors"
            if local
            else "check the id and the revision in the table of models, your access to it, and "
            "HF_HOME; without a network, put a local folder into the column id or use "
            f"{row.model}-twin"
        )
        first = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        if REMOTE_CODE in str(error):
            first = "it needs code that comes with it (auto_map in config.json)"
            remedy = "such code is never run: choose a model of a class that transformers has"
        offline = " (HF_HUB_OFFLINE is set)" if os.environ.get("HF_HUB_OFFLINE") else ""
        raise UserError(
            f"{row.model}: cannot load {row.id} at revision {row.revision}{offline}: {first}; "
            f"{remedy}"
        ) from None
