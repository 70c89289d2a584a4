"""A pretrained language model that is asked about texts: hidden states and losses.

The model is asked through `palimpsest.models.Models`. Texts are cut into tokens by the model's own
tokenizer. A start token precedes each text, so that every token of the text is predicted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from transformers import AutoConfig, AutoTokenizer

from palimpsest.corpora import TextCorpus
from palimpsest.density.embedding import mean_states
from palimpsest.errors import UserError
from palimpsest.jobs.deepspeed_models import DeepSpeedHolder
from palimpsest.models import read_models, resolve
from palimpsest.models.build import plain_errors
from palimpsest.models.table import Model
from palimpsest.training.batches import TokenisedStrings, by_length
from palimpsest.training.evaluation import measure
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Run

FULL = "full"
# Texts per forward pass on a CPU; they are longer than the strings of a language.
AT_ONCE_ON_CPU = 16


@dataclass(frozen=True)
class NoMaterial:
    """What a holder takes of a run's strings; a full model has its own vocabulary and weights."""

    vocabulary: int = 0
    seed: int = 0


class FrozenHolder(DeepSpeedHolder):
    """Holds a model that is only asked, in the memory of its weights alone.

    DeepSpeed keeps moments and float32 copies of all weights that may be trained, and it wants at
    least one of them, so this is the smallest.
    """

    def build(self, seed: int):
        """The model with its pretrained weights, on the CPU."""
        model = super().build(seed).requires_grad_(False)
        min(model.parameters(), key=torch.Tensor.numel).requires_grad_(True)
        return model


class LanguageModel:
    """A pretrained model of the table of models, by name, open for questions.

    Raises `UserError` if it is unknown, if it is a twin, or if it cannot be loaded.
    """

    def __init__(self, name: str, models: str, precision: str, batch_size: int):
        self.row, scale = resolve(name, read_models(models))
        if scale != FULL:
            raise UserError(f"{name}: is a twin, which reads no words; name a pretrained model")
        self.tokenizer, self.most_tokens = _tokenizer(self.row)
        recipe = Recipe(self.row.learning_rate, batch_size=1, zero_stage=0, precision=precision)
        # A holder reads neither the corpus nor the dataset of its run.
        run = Run(name, self.row, FULL, TextCorpus(name, [("",)]), dataset="", recipe=recipe)
        self.holder = FrozenHolder(run, NoMaterial())
        weights = dict(self.holder.build(0).named_parameters())
        self.models = self.holder.open([{n: w.detach() for n, w in weights.items()}])
        on_cpu = self.models.device.type == "cpu"
        self.batch_size = min(batch_size, AT_ONCE_ON_CPU) if on_cpu else batch_size

    def mean_hidden(self, texts: list[str]) -> np.ndarray:
        """The mean float32[texts, D] of the last hidden states over each text's tokens."""
        encoded = self._encoded(texts)
        return mean_states(self.models, encoded, self._batches(encoded), dtype=np.float32)

    def measure(self, texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
        """The number of tokens int64[texts], and the nll float64[texts] in nats, of each text."""
        encoded = self._encoded(texts)

        def predict(rows_MB: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
            batch = encoded.batch(rows_MB[0], self.models.device)
            return self.models.logits(batch.ids_BT.unsqueeze(0)), batch.targets_BT.unsqueeze(0)

        (found,) = measure([list(self._batches(encoded))], [len(texts)], predict)
        return encoded.n_tokens, found[0]

    def close(self) -> None:
        """Leave the group of processes; the model cannot be asked after that."""
        self.holder.close()

    def _encoded(self, texts: list[str]) -> TokenisedStrings:
        return encode(self.row.model, self.tokenizer, self.most_tokens, texts)

    def _batches(self, encoded: TokenisedStrings) -> Iterator[np.ndarray]:
        rows = np.arange(len(encoded.lengths))
        yield from by_length(encoded.lengths, rows, self.batch_size, 1)


def encode(name: str, tokenizer, most_tokens: int | None, texts: list[str]) -> TokenisedStrings:
    """The tokens of texts, each after a start token.

    `name` is the model's, in messages, and `most_tokens` what it takes (None: no limit). Raises
    `UserError` if a text has more tokens than that.
    """
    start = tokenizer.bos_token_id
    start = tokenizer.eos_token_id if start is None else start
    if start is None:
        raise UserError(f"{name}: its tokenizer has neither a start nor an end token")
    found = tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    rows = [[start, *ids] for ids in found]
    lengths = np.array([len(row) for row in rows])
    if most_tokens is not None and lengths.max() > most_tokens:
        text = texts[int(lengths.argmax())]
        raise UserError(
            f"{name}: the segment {text[:60]!r} has {lengths.max()} tokens with the start token, "
            f"and the model takes {most_tokens}; make the window smaller"
        )
    return TokenisedStrings.of_rows(rows, filler=start)


def _tokenizer(row: Model):
    """The model's own tokenizer, and the most tokens that the model takes (None: no limit)."""
    with plain_errors(row):
        where = {"revision": row.revision, "trust_remote_code": False}
        tokenizer = AutoTokenizer.from_pretrained(row.id, **where)
        config = AutoConfig.from_pretrained(row.id, **where)
    return tokenizer, getattr(config, "max_position_embeddings", None)
