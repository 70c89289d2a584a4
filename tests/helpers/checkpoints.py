"""A checkpoint as from the Hugging Face hub, in a folder, and the table of models that names it."""

from dataclasses import asdict
from pathlib import Path

import torch
from tokenizers import Tokenizer, pre_tokenizers
from tokenizers.models import WordLevel
from transformers import PreTrainedTokenizerFast

from helpers.commands import MODELS
from palimpsest.models import read_models
from palimpsest.models.build import build


def write_checkpoint(folder: Path, model: str) -> Path:
    """Save the twin of a model as the full model `mine`; return the table that lists `mine`."""
    row = read_models(MODELS)[model]
    checkpoint, table = folder / "checkpoint", folder / "mine.tsv"
    build(row, "twin", 12, 7, torch.float32).save_pretrained(checkpoint)
    words = {word: i for i, word in enumerate(["<unk>", "<s>", "</s>", *"123456789"])}
    made = Tokenizer(WordLevel(words, unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    specials = {"unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
    PreTrainedTokenizerFast(tokenizer_object=made, **specials).save_pretrained(checkpoint)
    cells = {**asdict(row), "model": "mine", "id": checkpoint}
    lines = ["\t".join(map(str, line)) for line in (cells, cells.values())]
    table.write_text("\n".join(lines) + "\n")
    return table
