"""Trained models as folders of Hugging Face, which other programs load with `from_pretrained`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pandas as pd
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer, pre_tokenizers, processors
from tokenizers.models import WordLevel
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    GenerationConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.utils import GENERATION_CONFIG_NAME
from transformers.utils.logging import disable_progress_bar

from palimpsest import manifests, tables
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.jobs.cards import Losses, losses_at_end, model_card
from palimpsest.making import reads
from palimpsest.models import Model, read_models, resolve
from palimpsest.models.alphabets import TWIN_SPECIALS, Alphabet, special_text
from palimpsest.models.build import plain_errors, tokens, twin_config, twin_tokenizer
from palimpsest.traces import Trace
from palimpsest.traces import read as read_trace
from palimpsest.training.state import writing

ABOUT, CARD = "palimpsest.json", "README.md"
# Keys of a manifest that say which run a model is
OF_A_RUN = ("model", "language", "size", "seed", "variant", "key", "code")


def export(
    folder: str | Path,
    row: Model,
    scale: str,
    alphabet: Alphabet,
    weights: Mapping[str, torch.Tensor],
    about: Mapping,
    recipe: Mapping | None = None,
    losses: Losses | None = None,
) -> None:
    """Write a model as `save_pretrained` leaves it: configuration, weights and tokenizer.

    The folder appears when it is complete. The file `README.md` in it is the model's card.
    `palimpsest.json` holds `about` and the tokens of start and end. If strings are symbols, they
    are encoded terminal by terminal, so it also holds the token of every terminal.

    Parameters
    ----------
    folder : the folder to write; an older one is replaced
    row, scale : the model's row of the table of models, and `full` or `twin`
    alphabet : of the model's corpus
    weights : all weights by parameter name; a weight that two layers share has its first name
    about : what the model is, as JSON values
    recipe, losses : of its training, for the card, see `palimpsest.jobs.cards`

    Raises
    ------
    UserError
        If the weights are those of another model, or if the folder cannot be written.
    """
    ids = tokens(row, scale, alphabet)
    encoding = {"start": ids.start, "end": ids.end}
    if not alphabet.is_text:
        encoding["terminals"] = ids.id_of
    disable_progress_bar()
    with tables.replacing_folder(folder) as temporary, writing(Path(folder)):
        model = with_weights(row, scale, ids.vocabulary, weights)
        model.save_pretrained(temporary)
        if (generation := _generation(row, scale)) is not None:
            # Unlike `save_pretrained`, this takes settings as they came with the model.
            generation.to_json_file(Path(temporary) / GENERATION_CONFIG_NAME)
        tokenizer_of(row, scale, alphabet).save_pretrained(temporary)
        tables.write_json(Path(temporary) / ABOUT, {**about, "tokens": encoding})
        page = model_card(row, scale, about, recipe, losses)
        Path(temporary, CARD).write_text(page, encoding="utf-8")


@reads(manifest=manifests.read, weights=load_file, trace=read_trace, strings=STRINGS)
def export_run(
    folder: str | Path,
    manifest: Mapping,
    weights: Mapping[str, torch.Tensor],
    trace: Trace,
    strings: pd.DataFrame,
    models: str,
) -> None:
    """Write the model of one run; see `export`.

    `manifest` is the run's manifest, `weights` are its final weights, `trace` and `strings` are its
    trace and its dataset, and `models` is the file of the table of models. Raises `UserError` if
    the model is not in the table.
    """
    try:
        row, scale = resolve(manifest["model"], read_models(models))
    except KeyError as error:
        raise UserError(f"{error.args[0]}; add its row to the table of models again") from None
    decided = manifest["configuration"]
    about = {name: manifest[name] for name in OF_A_RUN}
    about["predict_end"] = decided["recipe"]["predict_end"]
    alphabet, recipe = Alphabet.of_configuration(decided), decided["recipe"]
    losses = losses_at_end(trace, strings, is_text=alphabet.is_text)
    export(folder, row, scale, alphabet, weights, about, recipe, losses)


def with_weights(
    row: Model, scale: str, vocabulary: int, weights: Mapping[str, torch.Tensor]
) -> PreTrainedModel:
    """The model of a row with the given weights, in the number format of the weights.

    `vocabulary` is the number of tokens of a twin.

    Raises `UserError` if a weight is missing, unknown or of another shape.
    """
    if scale == "twin":
        config = twin_config(row, vocabulary)
    else:
        with plain_errors(row):
            config = AutoConfig.from_pretrained(
                row.id, revision=row.revision, trust_remote_code=False
            )
    # Training needs no cache, but generating without it is slow.
    config.use_cache = True
    # On the device `meta`, nothing is initialised: the model takes the given tensors as its own.
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(
            config, dtype=next(iter(weights.values())).dtype, trust_remote_code=False
        )
    try:
        found = model.load_state_dict(dict(weights), strict=False, assign=True)
    except RuntimeError as error:  # a weight has another shape
        raise UserError(f"{row.model}: {error}; train the model again") from None
    model.tie_weights()
    missing = [name for name, tensor in model.state_dict().items() if tensor.is_meta]
    if wrong := [*missing, *found.unexpected_keys]:
        raise UserError(
            f"{row.model}: the weights {', '.join(wrong[:3])} do not fit to its architecture "
            f"{row.model_type}; train the model again"
        )
    return model


def _generation(row: Model, scale: str) -> GenerationConfig | None:
    """The settings for generation that come with a full model, if there are any."""
    if scale == "twin":
        return None
    try:
        return GenerationConfig.from_pretrained(row.id, revision=row.revision)
    except OSError:
        return None


def tokenizer_of(row: Model, scale: str, alphabet: Alphabet) -> PreTrainedTokenizerBase:
    """The tokenizer of a full model, or of a twin."""
    if scale == "twin" and alphabet.is_text:
        return twin_tokenizer(alphabet.tokenizer)
    if scale == "twin":
        return _tokenizer_of_symbols(alphabet.terminals)
    with plain_errors(row):
        return AutoTokenizer.from_pretrained(row.id, revision=row.revision, trust_remote_code=False)


def _tokenizer_of_symbols(terminals: tuple[str, ...]) -> PreTrainedTokenizerFast:
    """A tokenizer for strings with blanks between terminals; the start token comes first.

    It has no token for an unknown word, because the model has none: such a word is an error.
    """
    start, end = (special_text(name, terminals) for name in TWIN_SPECIALS)
    words = [start, end, *terminals]
    made = Tokenizer(WordLevel({word: place for place, word in enumerate(words)}))
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(
        single=f"{start} $A", special_tokens=[(start, TWIN_SPECIALS["start"])]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=made, bos_token=start, eos_token=end, pad_token=end
    )
