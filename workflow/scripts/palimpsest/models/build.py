"""Models ready to train, and the token ids of strings.

The slow imports (torch, transformers) are in this file and not in `table.py`, because Snakemake
reads `table.py`.
"""

import contextlib
import json
import os
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import numpy as np
import torch
from safetensors import SafetensorError
from tokenizers import Tokenizer
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.modeling_utils import set_zero3_state

from palimpsest.errors import UserError
from palimpsest.models.alphabets import SPECIAL, TWIN_SPECIALS, Alphabet
from palimpsest.models.folders import check_folder
from palimpsest.models.limits import TWIN_POSITIONS, Limits, shown
from palimpsest.models.table import Model
from palimpsest.models.tokens import Vocabulary, single_tokens

# Gemma 2 caps its attention logits; only the eager implementation supports this.
EAGER_ONLY = {"gemma2"}
NO_LETTER = "\U0010ffff"  # Unicode promises that it is never a letter
REMOTE_CODE = "trust_remote_code"  # in the error for a model that exists only as code


@dataclass(frozen=True)
class SymbolTokens:
    """One token per terminal: the ids of `symbols`, in their order, of start and of end."""

    symbols: tuple[str, ...]
    terminals: tuple[int, ...]
    start: int
    end: int

    @cached_property
    def id_of(self) -> dict[str, int]:
        return dict(zip(self.symbols, self.terminals, strict=True))

    @property
    def vocabulary(self) -> int:
        """Size of a vocabulary that holds all tokens."""
        return max(*self.terminals, self.start, self.end) + 1

    def rows(self, texts: Iterable[str], what: str = "string") -> list[list[int]]:
        """The ids of each string, whose symbols are separated by blanks.

        Raises `UserError` if a symbol of a string is not a symbol of the corpus.
        """
        try:
            return [[self.id_of[symbol] for symbol in text.split(" ")] for text in texts]
        except KeyError as error:
            raise UserError(
                f"the dataset has the symbol {error.args[0]!r}, which is not a terminal of its "
                "corpus; delete the dataset, and make it from the corpus' file again"
            ) from None


@dataclass(frozen=True)
class TextTokens:
    """The tokens of a tokenizer, which belongs to the model with this name."""

    model: str
    tokenizer: PreTrainedTokenizerBase
    start: int
    end: int

    @classmethod
    def of(cls, model: str, tokenizer: PreTrainedTokenizerBase) -> "TextTokens":
        """A tokenizer without a start token gives its end token for it, and the reverse.

        Raises `UserError` if it has neither.
        """
        known = (tokenizer.bos_token_id, tokenizer.eos_token_id)
        if known == (None, None):
            raise UserError(f"{model}: its tokenizer has neither a start nor an end token")
        start, end = known
        return cls(model, tokenizer, end if start is None else start, start if end is None else end)

    @property
    def vocabulary(self) -> int:
        """Size of a vocabulary that holds all tokens."""
        return len(self.tokenizer)

    def rows(self, texts: Iterable[str], what: str = "string") -> list[list[int]]:
        """The ids of each text. A text is only text: the name of a special token in it, such as
        `</s>`, is read letter by letter.

        Raises `UserError` if a text has no token; `what` is what a text is called.
        """
        texts = list(texts)
        found = self._read(texts)["input_ids"]
        if empty := [text for text, ids in zip(texts, found, strict=True) if not ids]:
            raise UserError(
                f"{self.model}: its tokenizer has no token for the {what} {shown(empty[0])}, and "
                "leaves it out; leave the text out, too, or choose a model that knows its "
                "characters"
            )
        return found

    def prompts(
        self, texts: Sequence[str], letters: Sequence[int], what: str = "string"
    ) -> list[int]:
        """The number of tokens of each text that end within its first letters.

        Some tokenizers begin with a token of no letter; a text without a prompt keeps it.

        Raises `UserError` if the tokenizer does not say where a token ends, or if a text has no
        token after its prompt.
        """
        ends = self.ends(
            texts, "so it cannot tell prompts apart; leave the prompts out, or choose another model"
        )
        found = [
            sum(end <= n for end in places) if n else 0
            for places, n in zip(ends, letters, strict=True)
        ]
        for text, n, n_tokens, places in zip(texts, letters, found, ends, strict=True):
            if n_tokens == len(places):
                raise UserError(
                    f"{self.model}: its tokenizer has no token for {shown(text[n:])}, the text "
                    f"after the prompt of a {what}; leave the {what} out, or choose a model that "
                    "knows its characters"
                )
        return found

    def ends(self, texts: Sequence[str], but: str) -> list[list[int]]:
        """For each token of each text, the number of letters of the text up to the token's end.

        Raises `UserError` if the tokenizer does not say where a token ends; `but` is what does not
        work then, and the remedy.
        """
        if not self.tokenizer.is_fast:
            raise UserError(f"{self.model}: its tokenizer does not say where a token ends, {but}")
        offsets = self._read(list(texts), return_offsets_mapping=True)["offset_mapping"]
        return [[end for _, end in places] for places in offsets]

    def _read(self, texts: list[str], **more: bool) -> dict[str, list]:
        """What the tokenizer says of each text, in which no token is special.

        The library's `split_special_tokens` does not look for special tokens in a text. But their
        names may also be words of the vocabulary, as in all Unigram models.

        Raises `UserError` if a text has a special token nevertheless.
        """
        found = _cut(self.tokenizer, texts, **more)
        places = self._with_specials(found)
        if places and self.tokenizer.is_fast:
            again = _cut(self._without_specials, [texts[place] for place in places], **more)
            for key, rows in again.items():
                for place, row in zip(places, rows, strict=True):
                    found[key][place] = row
            places = self._with_specials(found)
        if places:
            raise UserError(
                f"{self.model}: its tokenizer reads a special token in {shown(texts[places[0]])}; "
                "leave this text out, or choose another model"
            )
        return found

    def _with_specials(self, found: dict[str, list]) -> list[int]:
        """The places of the texts that have a special token."""
        rows = enumerate(found["input_ids"])
        return [place for place, ids in rows if not self._specials.keys().isdisjoint(ids)]

    @cached_property
    def _specials(self) -> dict[int, str]:
        """The names of special tokens by id; that of unknown text can be in any text."""
        vocabulary = Vocabulary.of_transformers(self.tokenizer)
        return {id: name for id, name in vocabulary.special.items() if id not in vocabulary.unknown}

    @cached_property
    def _without_specials(self) -> PreTrainedTokenizerFast:
        """The tokenizer with the same ids, in which special tokens have names that no text has."""
        state = json.loads(self.tokenizer.backend_tokenizer.to_str())
        named = {name: name + NO_LETTER for name in self._specials.values()}
        model = state["model"]
        if isinstance(model["vocab"], list):
            model["vocab"] = [[named.get(word, word), score] for word, score in model["vocab"]]
        else:
            model["vocab"] = {named.get(word, word): id for word, id in model["vocab"].items()}
        if "merges" in model:
            model["merges"] = [
                pair for pair in model["merges"] if named.keys().isdisjoint([*pair, "".join(pair)])
            ]
        for token in state["added_tokens"]:
            token["content"] = named.get(token["content"], token["content"])
        return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(state)))


def _cut(tokenizer: PreTrainedTokenizerBase, texts: list[str], **more: bool) -> dict[str, list]:
    return dict(
        tokenizer(texts, add_special_tokens=False, split_special_tokens=True, verbose=False, **more)
    )


Tokens = SymbolTokens | TextTokens


def tokens(row: Model, scale: str, alphabet: Alphabet) -> Tokens:
    """The tokens of a model on the strings of a corpus.

    Raises `UserError` if the strings are symbols, and the tokenizer splits one, does not know it,
    takes it for a special token, or has one token for two.
    """
    symbols = alphabet.terminals
    if scale == "twin" and not alphabet.is_text:
        first = len(TWIN_SPECIALS)
        return SymbolTokens(symbols, tuple(range(first, first + len(symbols))), **TWIN_SPECIALS)
    if scale == "twin":
        return TextTokens.of(row.model, twin_tokenizer(alphabet.tokenizer))
    with plain_errors(row):
        tokenizer = AutoTokenizer.from_pretrained(
            row.id, revision=row.revision, trust_remote_code=False
        )
    if alphabet.is_text:
        return TextTokens.of(row.model, tokenizer)
    return SymbolTokens(
        symbols,
        single_tokens(row, symbols, Vocabulary.of_transformers(tokenizer)),
        start=_first_known(tokenizer, row, "bos_token_id", "eos_token_id"),
        end=_first_known(tokenizer, row, "eos_token_id"),
    )


def twin_tokenizer(tokenizer: str) -> PreTrainedTokenizerFast:
    """The tokenizer of a twin of texts, from its JSON."""
    start, end = map(SPECIAL.format, TWIN_SPECIALS)
    made = Tokenizer.from_str(tokenizer)
    return PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token=start, eos_token=end, pad_token=end
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
            "knows, such as llama, mistral, qwen2, gemma2, gemma3_text, gpt_neox, olmo or opt"
        ) from None
    feed_forward = "ffn_dim" if hasattr(config, "ffn_dim") else "intermediate_size"
    # Gated feed-forward layers have three matrices, others have two. Those of OLMo are gated, too;
    # its norms have no weights, so that their epsilon is no setting.
    has_gates = hasattr(config, "rms_norm_eps") or row.model_type == "olmo"
    gated = feed_forward == "intermediate_size" and has_gates
    sizes[feed_forward] = width * 8 // 3 if gated else width * 4
    known = {name: value for name, value in sizes.items() if hasattr(config, name)}
    return AutoConfig.for_model(row.model_type, **known)


@contextlib.contextmanager
def plain_errors(row: Model) -> Iterator[None]:
    """Turn the errors of loading a model of the table into one line with the remedy."""
    if Path(row.id).is_dir():
        check_folder(row)
    remedy = (
        "check the id and the revision in the table of models, your access to it, and HF_HOME; "
        f"without a network, put a local folder into the column id or use {row.model}-twin"
    )
    with loading_in_one_line(
        f"{row.model}: cannot load {row.id} at revision {row.revision}", row.id, remedy
    ):
        yield


@contextlib.contextmanager
def loading_in_one_line(said: str, id: str, remedy: str) -> Iterator[None]:
    """Turn the errors of loading a model into one line: what is said of it, the cause, the remedy.

    `remedy` is for an `id` that is no folder.
    """
    try:
        yield
    except (OSError, ValueError, ImportError, SafetensorError) as error:
        first = next(iter(str(error).strip().splitlines()), type(error).__name__)
        if Path(id).is_dir():
            remedy = "the folder must hold config.json, the tokenizer and *.safetensors"
        if REMOTE_CODE in str(error):
            first = "it needs code that comes with it (auto_map in config.json)"
            remedy = "such code is never run: choose a model of a class that transformers has"
        offline = " (HF_HUB_OFFLINE is set)" if os.environ.get("HF_HUB_OFFLINE") else ""
        raise UserError(f"{said}{offline}: {first}; {remedy}") from None
