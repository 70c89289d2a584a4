"""The bench of an unlearning problem: its sets of strings, tasks for methods, and measurements."""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np
import pandas as pd
import torch

from palimpsest import tables
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.jobs.bench import Bench, HolderOf
from palimpsest.models import Models
from palimpsest.models.build import limits
from palimpsest.models.limits import check_positions, shown
from palimpsest.training.attempts import Passes
from palimpsest.training.batches import TokenisedStrings, encode
from palimpsest.training.runs import Run
from palimpsest.unlearning.evaluate.token_scores import token_scores
from palimpsest.unlearning.methods.sets import (
    FORGET,
    MOST_UNSEEN,
    RETAIN,
    UNSEEN,
    VALIDATION,
)
from palimpsest.unlearning.methods.task import Task, passes_within

SPLITS = {FORGET: "forget", RETAIN: "train", VALIDATION: "validation", UNSEEN: "test"}
MEASURED = (FORGET, RETAIN, UNSEEN)  # the sets whose losses are followed


class Workbench(Bench):
    """A bench with the sets of strings of an unlearning problem.

    `rows` maps the name of a set to the indices int[strings] of its strings in the dataset; a
    string with n copies occurs n times.
    """

    def __init__(self, run: Run, holder: HolderOf, passes: Passes | None = None):
        super().__init__(run, holder, passes)
        strings = tables.read(run.dataset, STRINGS)
        self.texts, split = strings["text"].to_numpy(), strings["split"].to_numpy()
        self.rows = {
            name: np.repeat(np.flatnonzero(split == value), self._copies(split == value))
            for name, value in SPLITS.items()
        }
        self.rows[UNSEEN] = self.rows[UNSEEN][:MOST_UNSEEN]
        if not self.material.counts[self.rows[FORGET]].any():
            raise UserError(f"{run.dataset}: has no string to forget; it must be of `original`")

    def _copies(self, which: np.ndarray) -> np.ndarray:
        """How often each of some strings is in its set: its copies in training, or 1 if none."""
        return np.maximum(self.material.counts[which], 1)

    def task(self, models: Models, seeds: list[tuple[int, ...]], cutoff: float) -> Task:
        """The task on which a method runs, within a share `cutoff` of the steps of retraining."""
        recipe = self.run.recipe
        n_retain = len(self.rows[RETAIN])
        return Task(
            models,
            self.material.encoded,
            {name: rows for name, rows in self.rows.items() if name != UNSEEN},
            rate=recipe.peak_rate,
            batch_size=recipe.batch_size,
            seeds=seeds,
            budget=passes_within(cutoff, recipe.epochs, n_retain, recipe.batch_size),
            refused=self.refused,
        )

    def refused(self, rows: np.ndarray, refusals: Sequence[str]) -> TokenisedStrings:
        """The prompts of some strings, each with the refusal that is drawn for this string.

        Raises `UserError` if the strings are symbols, or if the model does not take the length.
        """
        corpus, row = self.run.corpus, self.run.row
        if not corpus.is_text:
            raise UserError(
                f"{corpus.name}: its strings are symbols, and refusals are texts; leave the method "
                "out, or name a corpus of records"
            )
        prompts = [text[: corpus.prompts.get(text, 0)] for text in self.texts[rows]]
        drawn = [
            np.random.default_rng([self.keys["seed"], zlib.crc32(name.encode())]).choice(refusals)
            for name in self.material.string_ids[rows]
        ]
        texts = [prompt + refusal for prompt, refusal in zip(prompts, drawn, strict=True)]
        letters, predict_end = list(map(len, prompts)), self.run.recipe.predict_end
        found = encode(texts, self.material.token_ids, predict_end, letters, "refusal")
        longest = int(found.lengths.argmax())
        what, most = f"the refusal {shown(texts[longest])}", limits(row, self.run.scale).positions
        remedy = "shorten the refusals"
        check_positions(self.run.model, what, int(found.lengths[longest]), most, lambda _: remedy)
        return found

    def set_loss(self, name: str, measured: np.ndarray) -> np.ndarray:
        """Loss float64[M] of a set, nats per token; `measured` is float64[M, 3, S]."""
        rows = self.rows[name]
        # Contiguous rows are added up in the same order for any number of models.
        nll = np.ascontiguousarray(measured[:, 0, rows])
        return nll.sum(1) / self.material.encoded.n_tokens[rows].sum()

    def losses(self, models: Models, names: tuple[str, ...]) -> dict[str, np.ndarray]:
        """Loss float64[M] of some sets, nats per token."""
        rows = np.concatenate([self.rows[name] for name in names])
        measured = self.measure(models, rows)
        return {name: self.set_loss(name, measured) for name in names}

    def measure_with_scores(self, models: Models) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """What `measure` gives, and the scores of `token_scores`, each float64[M, strings]."""
        scores: dict[str, np.ndarray] = {}

        def keep(rows: np.ndarray, logits_MBTV: torch.Tensor, targets_MBT: torch.Tensor) -> None:
            for name, values_MB in token_scores(logits_MBTV, targets_MBT)._asdict().items():
                if name not in scores:
                    n_strings = len(self.material.encoded.lengths)
                    scores[name] = np.zeros((models.count, n_strings))
                scores[name][:, rows] = values_MB.cpu().numpy()

        measured = self.measure(models, also=keep)
        return measured, {name: self.holder.agree(values) for name, values in scores.items()}

    def loss_in(self, predictions: pd.DataFrame) -> float:
        """Loss in nats per token over the forget strings of a table `unlearned`, for the log."""
        names = self.material.string_ids[np.unique(self.rows[FORGET])]
        there = predictions[predictions["string_id"].isin(names)]
        return float(there["nll"].sum() / there["n_tokens"].sum())
