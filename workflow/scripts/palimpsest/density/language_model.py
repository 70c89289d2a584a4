"""A pretrained language model that gives hidden states and losses of texts.

The model is used through `palimpsest.models.Models`. Texts are cut into tokens by the model's own
tokenizer. A start token precedes each text, so that every token of the text is predicted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import torch
from transformers import AutoTokenizer

from palimpsest.corpora import TextCorpus
from palimpsest.density.embedding import mean_states
from palimpsest.density.unknown_tokens import unknown_ids, warn_of_left_out, warn_of_unknown
from palimpsest.errors import UserError
from palimpsest.jobs.deepspeed_models import DeepSpeedHolder
from palimpsest.models import read_models, resolve
from palimpsest.models.build import limits, plain_errors
from palimpsest.models.table import Model
from palimpsest.training.batches import TokenisedStrings, by_length
from palimpsest.training.evaluation import measure
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Run
from palimpsest.training.texts import encode_texts

FULL = "full"
# Texts per forward pass on a CPU; they are longer than the strings of a language.
AT_ONCE_ON_CPU = 16


@dataclass(frozen=True)
class NoMaterial:
    """Stands in for a run's strings, because a full model has its own vocabulary and weights."""

    vocabulary: int = 0
    seed: int = 0


class FrozenHolder(DeepSpeedHolder):
    """Holds a model that is not trained, in the memory of its weights alone.

    DeepSpeed keeps moments and float32 copies of all weights that may be trained, and it wants at
    least one of them, so this is the smallest.
    """

    def build(self, seed: int):
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
        self.tokenizer, self.limits = _tokenizer(self.row), limits(self.row, FULL)
        recipe = Recipe(self.row.learning_rate, batch_size=1, zero_stage=0, precision=precision)
        # A holder reads neither the corpus nor the dataset of its run.
        run = Run(name, self.row, FULL, TextCorpus(name, [("",)]), dataset="", recipe=recipe)
        self.holder = FrozenHolder(run, NoMaterial())
        weights = dict(self.holder.build(0).named_parameters())
        self.models = self.holder.open([{n: w.detach() for n, w in weights.items()}])
        on_cpu = self.models.device.type == "cpu"
        self.batch_size = min(batch_size, AT_ONCE_ON_CPU) if on_cpu else batch_size

    def mean_hidden(self, texts: Callable[[], Iterator[list[str]]]) -> Iterator[np.ndarray]:
        """The mean float32[texts, D] of the last hidden states over each text's tokens, by parts.

        `texts` gives the texts in parts, and can be called again.
        """
        n_unknown = n_tokens = 0
        for part in texts():
            encoded = self._encoded(part)
            n_unknown += self._unknown(encoded).sum()
            n_tokens += encoded.n_tokens.sum()
            yield mean_states(self.models, encoded, self._batches(encoded), dtype=np.float32)
        self._warn(n_unknown / max(1, n_tokens), chain.from_iterable(texts()), "segments")

    def measure(
        self, texts: list[str], prompts: list[int] | None = None, what: str = "queries"
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """For each text, how many tokens it has, how many are unknown, and its nll in nats.

        The numbers are int64[texts], the nll is float64[texts]. `prompts` are the numbers of the
        first letters of each text that are its prompt, whose tokens do not count. `what` names the
        texts. Warns of unknown tokens: one token stands for any word, so a model predicts it
        easily.

        Raises `UserError` as `encode_texts` does.
        """
        encoded = self._encoded(texts, prompts)

        def predict(rows_MB: np.ndarray) -> tuple[torch.Tensor, torch.Tensor]:
            batch = encoded.batch(rows_MB[0], self.models.device)
            return self.models.logits(batch.ids_BT.unsqueeze(0)), batch.targets_BT.unsqueeze(0)

        (found,) = measure([list(self._batches(encoded))], [len(texts)], predict)
        n_unknown = self._unknown(encoded)
        share = n_unknown.sum() / encoded.n_tokens.sum()
        self._warn(share, texts, what, "perplexities")
        return encoded.n_tokens, n_unknown, found[0]

    def _unknown(self, encoded: TokenisedStrings) -> np.ndarray:
        """Number of unknown tokens int64[texts] among those that are predicted."""
        place = np.arange(encoded.ids.shape[1])
        contexts = np.broadcast_to(encoded.contexts, encoded.lengths.shape)
        is_text = (place >= contexts[:, None]) & (place < encoded.lengths[:, None])
        return (is_text & np.isin(encoded.ids, unknown_ids(self.tokenizer))).sum(axis=1)

    def _warn(
        self, share: float, texts: Iterable[str], what: str, numbers: str = "embeddings"
    ) -> None:
        """Warn of a share of unknown tokens, and of characters without a token."""
        warn_of_unknown(self.row.model, share, what, numbers)
        warn_of_left_out(self.row.model, self.tokenizer, texts, what, numbers)

    def close(self) -> None:
        """Leave the group of processes. The model cannot be used after that."""
        self.holder.close()

    def _encoded(self, texts: list[str], prompts: list[int] | None = None) -> TokenisedStrings:
        what, remedy = "segment", "make the window of the text smaller"
        if prompts is not None:
            what, remedy = "query with its response", "leave it out of the queries"
        name, limits = self.row.model, self.limits
        return encode_texts(name, self.tokenizer, limits, texts, what, remedy, prompts)

    def _batches(self, encoded: TokenisedStrings) -> Iterator[np.ndarray]:
        rows = np.arange(len(encoded.lengths))
        yield from by_length(encoded.lengths, rows, self.batch_size, 1)


def _tokenizer(row: Model):
    with plain_errors(row):
        return AutoTokenizer.from_pretrained(row.id, revision=row.revision, trust_remote_code=False)
