"""Runs (a model trained on a dataset), and the strings of a run in the form an engine needs."""

import hashlib
import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pandas as pd

from palimpsest import tables, token_losses, traces
from palimpsest.commands import remake
from palimpsest.corpora import Corpus, predicted, string_of
from palimpsest.datasets.choices import (
    placebo_of,
    placebos_of,
    removed_strings,
    sample_by_copies,
)
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.models import Model
from palimpsest.models.build import Tokens, limits, tokens
from palimpsest.models.limits import check_positions, check_vocabulary, shown
from palimpsest.regimes import LEAVE_ONE_OUT_AGAIN, WHOLE_AGAIN, of_replicate, without_string
from palimpsest.training.batches import IGNORED, TokenisedStrings, encode
from palimpsest.training.evaluation import SUMS, summarise
from palimpsest.training.recipe import Recipe, epoch_order


@dataclass(frozen=True)
class Run:
    """One run: a model (its name, its row in the table of models, and its scale) on one dataset.

    `left_out` is the name of a training string. If given, the run is trained without any copy of
    that string, and is measured on that string and on its placebo only. `removal` is the name of a
    training of the regime removals. It is measured on all training strings and on their placebos,
    and the places of the strings that it lacks stay empty. `replicate` is the number
    of a replicate, which has its own initial weights and its own order of the data. `again` means:
    once more, with the initial weights and the order of the second leave-one-out. With
    `by_token`, the run also keeps the losses of single tokens, and with `by_epoch` its weights
    after every epoch that is measured; neither affects its trace or its key.
    """

    model: str
    row: Model
    scale: str
    corpus: Corpus
    dataset: str
    recipe: Recipe
    left_out: str | None = None
    removal: str | None = None
    replicate: int | None = None
    again: bool = False
    by_token: bool = False
    by_epoch: bool = False

    @property
    def kept_epochs(self) -> list[int]:
        return self.recipe.evaluation_epochs() if self.by_epoch else []

    def about(self) -> dict:
        return {"model": self.model, "dataset": self.dataset, **self._which()}

    def _which(self) -> dict:
        # "draw" is frozen: the key of the state hashes this name.
        which = {
            "left_out": self.left_out,
            "removal": self.removal,
            "draw": self.replicate,
            "again": self.again or None,
        }
        return {name: value for name, value in which.items() if value is not None}

    def configuration(self) -> dict:
        """Everything that decides the trace, except the dataset and the engine."""
        return {
            "model": self.model,
            "row": self.row.decisive(self.scale),
            "scale": self.scale,
            **self.corpus.alphabet.decisive(self.scale),
            **({"prompts": _digest(self.corpus.prompts)} if self.corpus.prompts else {}),
            "recipe": self.recipe.decisive(),
            **self._which(),
        }


def _digest(prompts: Mapping[str, int]) -> str:
    return hashlib.sha256(json.dumps(list(prompts.items())).encode()).hexdigest()


def seed_of_replicate(seed: int, variant: str, replicate: int) -> int:
    """The seed of one replicate on a variant of a dataset, independent of all other replicates.

    The seed is also independent of the seeds of other variants, because models of two variants are
    compared as samples of two distributions.
    """
    entropy = [seed, zlib.crc32(variant.encode()), replicate]
    return int(np.random.SeedSequence(entropy).generate_state(1, np.uint64)[0])


def strings_to_leave_out(dataset: str, n: int | None = None) -> list[str]:
    """The names of at most `n` distinct training strings of a dataset, in the dataset's order.

    They are chosen by `sample_by_copies`, with the dataset's seed; without `n`, all are left out.
    """
    strings = tables.read(dataset, STRINGS)
    train = strings[strings["count"] > 0]
    chosen = train if n is None else sample_by_copies(train, n, int(train["seed"].iloc[0]))
    return chosen["string_id"].tolist()


def n_cohorts(dataset: str) -> int:
    return int(tables.read(dataset, STRINGS)["cohort"].max())


class Material:
    """The strings of a run, ready for training and measuring.

    `multiset` int[training strings] lists rows of the dataset; a string with n copies occurs n
    times. `counts` int[strings] is the number of copies of each row. `measured_rows` int[n] are
    the rows whose loss is measured. `keys` holds the columns that identify the run. `cohorts`
    int[training strings] are the macro-batches of a stream, from 1; None for any other dataset.
    """

    def __init__(self, run: Run):
        self.run = run
        strings = tables.read(run.dataset, STRINGS)
        self.string_ids = strings["string_id"].to_numpy(dtype=object)
        self.counts = strings["count"].to_numpy()
        self.test_counts = strings["test_count"].to_numpy()
        self.measured_rows = np.arange(len(strings))
        keys = strings.loc[0, ["language", "size", "seed", "variant"]].to_dict()
        if run.left_out is not None:
            self.measured_rows = _left_out_and_placebo(strings, run.left_out)
            self.counts = _without(run, self.string_ids, self.counts)
            keys["variant"] = without_string(run.left_out)
        elif run.removal is not None:
            self.measured_rows = _trained_and_placebos(strings)
            keys["variant"] = run.removal
        elif run.again:
            keys["variant"] = WHOLE_AGAIN
        self.seed = int(keys["seed"])
        if run.again:
            self.seed = seed_of_replicate(self.seed, LEAVE_ONE_OUT_AGAIN, 0)
        if run.replicate is not None:
            self.seed = seed_of_replicate(self.seed, keys["variant"], run.replicate)
            keys["variant"] = of_replicate(keys["variant"], run.replicate)
        self.keys = {"model": run.model, **keys}
        self.token_ids: Tokens = tokens(run.row, run.scale, run.corpus.alphabet)
        self.encoded: TokenisedStrings = encode(
            strings["text"],
            self.token_ids,
            run.recipe.predict_end,
            [run.corpus.prompts.get(text, 0) for text in strings["text"]],
        )
        if _only_last(strings, run):
            self.encoded = replace(self.encoded, contexts=self.encoded.lengths - _n_last(run))
        self._ends = self._ends_of(strings["text"]) if run.by_token else []
        self.multiset = np.repeat(np.arange(len(strings)), self.counts)
        self._is_removed = np.zeros(len(strings), dtype=bool)
        if run.removal is not None:
            self._is_removed = np.isin(self.string_ids, removed_strings(strings, run.removal))
            self.counts = np.where(self._is_removed, 0, self.counts)
        self.cohorts: np.ndarray | None = None
        # A dataset with macro-batches is a stream; its training strings are not measured.
        if strings["cohort"].notna().any():
            self.measured_rows = np.flatnonzero(strings["split"] != "train")
            self.cohorts = strings["cohort"].fillna(0).to_numpy(dtype=int)[self.multiset]
        # Rows of each measurement of the run: single tokens are those after the start token
        self.n_rows = SUMS + self.encoded.targets.shape[1] - 1 if run.by_token else SUMS
        _check_tokens(strings, run)
        self._check_limits(strings["text"], run)

    def _check_limits(self, texts: pd.Series, run: Run) -> None:
        """Raise `UserError` if the model does not take a string's length, or one of its tokens."""
        most, row = limits(run.row, run.scale), int(self.encoded.lengths.argmax())
        what = f"the string {shown(texts.iloc[row])} in {run.dataset}"
        n_tokens = int(self.encoded.lengths[row])
        check_positions(run.model, what, n_tokens, most.positions, run.corpus.when_too_long)
        check_vocabulary(run.model, self.vocabulary - 1, most.vocabulary)

    def _ends_of(self, texts: pd.Series) -> list[np.ndarray]:
        """`TokenLosses.ends` of each text, float[predicted tokens].

        Raises `UserError` if the model's tokenizer does not say where a token ends.
        """
        n_tokens = self.encoded.n_tokens
        if not self.run.corpus.is_text:
            return [np.full(n, np.nan) for n in n_tokens]
        ends = self.token_ids.ends(
            texts, "which losses of single tokens need; leave their studies out, or the model"
        )
        tail = [np.nan] * self.run.recipe.predict_end
        rows = [np.maximum.accumulate([*row, *tail]) for row in ends]
        return [row[len(row) - n :] for row, n in zip(rows, n_tokens, strict=True)]

    def order(self, epoch: int) -> np.ndarray:
        """Rows int[n] of the training strings of an epoch, in order; epochs count from 1.

        An epoch of a stream is a macro-batch. The place of a string that a removal lacks is -1.
        """
        rows = self.multiset if self.cohorts is None else self.multiset[self.cohorts == epoch]
        rows = rows[epoch_order(len(rows), self.seed, epoch)]
        return np.where(self._is_removed[rows], -1, rows)

    @cached_property
    def epoch_size(self) -> int:
        """Number of training strings in every epoch, with the places that a removal leaves empty.

        Raises `UserError` for a stream that is to be trained on more or less than once.
        """
        if self.cohorts is None:
            return len(self.multiset)
        _check_one_pass(self.cohorts, self.run)
        return int((self.cohorts == 1).sum())

    @cached_property
    def measured_counts(self) -> np.ndarray:
        """1 for each row of the dataset that is measured, otherwise 0, int[strings]."""
        return np.isin(np.arange(len(self.counts)), self.measured_rows).astype(int)

    @cached_property
    def vocabulary(self) -> int:
        """Size of a vocabulary that holds all tokens; used for twins."""
        return self.token_ids.vocabulary

    def shown_loss(self, measured: dict[int, np.ndarray]) -> float:
        """Loss in nats per token at the last measured epoch, to be shown as progress.

        It is the loss over the training multiset or, if no training string is measured, over the
        measured strings.
        """
        trained = self.counts * self.measured_counts
        counts = trained if trained.any() else self.measured_counts
        return summarise(measured[max(measured)], counts, self.encoded.n_tokens)

    def losses(self, measured: np.ndarray) -> dict[str, float]:
        """Train and test loss in nats per token, of one measurement float[n_rows, strings].

        A run that measures only some strings has no loss over a set that it does not measure.
        """
        found = {"train_loss": self.counts, "test_loss": self.test_counts}
        return {
            name: summarise(measured, counts, self.encoded.n_tokens)
            for name, counts in found.items()
            if counts.any() and self.measured_counts[counts > 0].all()
        }

    def check(self, measured: np.ndarray) -> np.ndarray:
        """Return `measured` float[n_rows, strings]; `UserError` if a number is not finite."""
        if not np.isfinite(measured).all():
            run = ", ".join(f"{name} {value}" for name, value in self.keys.items())
            raise UserError(
                f"{run}: the loss is no longer finite; lower its learning rate in the table of "
                "models, or gradient_clipping in the recipe"
            )
        return measured

    def resumed(self, measured: dict[int, np.ndarray]) -> dict[int, np.ndarray]:
        """The measurements of a checkpoint, with the rows that this run keeps.

        Raises `ValueError` if the checkpoint lacks the losses of single tokens.
        """
        if any(len(rows) < self.n_rows for rows in measured.values()):
            raise ValueError("it does not have the losses of single tokens")
        return {epoch: rows[: self.n_rows] for epoch, rows in measured.items()}

    def trace(self, measured: dict[int, np.ndarray]) -> traces.Trace:
        """The trace of a run, from the measurements float[n_rows, strings] of each epoch."""
        epochs, rows = sorted(measured), self.measured_rows
        nll, n_correct, rank_sum = np.stack([measured[epoch][:SUMS, rows] for epoch in epochs], 1)
        return traces.Trace(
            run=self.keys,
            epochs=np.array(epochs),
            string_ids=self.string_ids[rows],
            n_tokens=self.encoded.n_tokens[rows],
            nll=nll,
            n_correct=n_correct.astype(np.int64),
            rank_sum=rank_sum.astype(np.int64),
        )

    def tokens(self, measured: dict[int, np.ndarray]) -> pd.DataFrame | None:
        """The table `tokens` of a run, from the measurements of each epoch; None if not kept."""
        if self.n_rows == SUMS:
            return None
        epochs, rows = sorted(measured), self.measured_rows
        of_strings = np.stack([measured[epoch][SUMS:, rows].T for epoch in epochs])
        is_predicted = self.encoded.targets[rows, 1:] != IGNORED
        losses = token_losses.TokenLosses(
            run=self.keys,
            epochs=np.array(epochs),
            string_ids=self.string_ids[rows],
            n_tokens=self.encoded.n_tokens[rows],
            nll=of_strings[:, is_predicted],
            ends=np.concatenate([self._ends[row] for row in rows]),
        )
        return token_losses.to_frame(losses)


def _left_out_and_placebo(strings: pd.DataFrame, left_out: str) -> np.ndarray:
    """Rows of the string that is left out and, after it, of its placebo, if there is one."""
    names = strings["string_id"]
    if not (names == left_out).any():
        return np.array([], dtype=int)  # the next check says so
    measured = [name for name in (left_out, placebo_of(strings, left_out)) if name is not None]
    return pd.Index(names).get_indexer(measured)


def _trained_and_placebos(strings: pd.DataFrame) -> np.ndarray:
    """Rows of all distinct training strings and, after them, of their placebos."""
    trained = strings.loc[strings["count"] > 0, "string_id"]
    placebos = [name for name in placebos_of(strings, trained) if name is not None]
    measured = dict.fromkeys([*trained, *sorted(placebos)])
    return pd.Index(strings["string_id"]).get_indexer(list(measured))


def _without(run: Run, string_ids: np.ndarray, counts: np.ndarray) -> np.ndarray:
    here = (string_ids == run.left_out) & (counts > 0)
    if not here.any():
        raise UserError(f"{run.dataset}: has no training string {run.left_out!r} to leave out")
    if (counts > 0).sum() == 1:
        raise UserError(f"{run.dataset}: nothing is left to train on without its only string")
    return np.where(here, 0, counts)


def _check_one_pass(cohorts: np.ndarray, run: Run) -> None:
    """Refuse to train on a stream for another number of epochs than it has macro-batches."""
    if run.recipe.epochs != cohorts.max():
        raise UserError(
            f"{run.dataset}: is a stream of {cohorts.max()} macro-batches, which are trained on "
            "once, and no section of the configuration asks for this run; name its size there"
        )


def _n_last(run: Run) -> int:
    """The number of tokens of a string of which only the last symbol is predicted, and the end."""
    return 1 + run.recipe.predict_end


def _only_last(strings: pd.DataFrame, run: Run) -> bool:
    """Whether the dataset says that only the last symbol of each string is predicted."""
    return not run.corpus.is_text and bool((strings["n_tokens"] == _n_last(run)).all())


def _check_tokens(strings: pd.DataFrame, run: Run) -> None:
    """Check what is predicted of strings: the dataset's Bayes-optimal loss holds for it only."""
    if _only_last(strings, run):
        return
    found = (string_of(run.corpus, text) for text in strings["text"])
    n_tokens = [predicted(run.corpus, string, run.recipe.predict_end) for string in found]
    if n_tokens != strings["n_tokens"].tolist():
        raise UserError(
            f"{run.dataset}: was built with another datasets/predict_end than the run's; "
            f"{remake(run.dataset)}"
        )
