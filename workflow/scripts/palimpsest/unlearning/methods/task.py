"""A task: the models of one architecture on which a method works, their strings, and their seeds.

The result for a model does not depend on the other models: the batches and random numbers of each
model follow from its own seed.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from palimpsest.errors import UserError
from palimpsest.lazy_import import lazy_import
from palimpsest.unlearning.methods.losses import IGNORED, string_nll
from palimpsest.unlearning.methods.sets import FORGET, REFUSED, RETAIN
from palimpsest.unlearning.run.setups import retraining_steps

if TYPE_CHECKING:
    from palimpsest.models.trained import Models, Weights
    from palimpsest.training.batches import TokenisedStrings

torch = lazy_import("torch")

# The purpose of a random number; each purpose has a separate stream of a model's seed.
ORDER, ORDER_BESIDE, WEIGHTS, SELECTION, TOKENS, NOISE = range(6)


def passes_within(cutoff: float, epochs: int, n_retain: int, batch_size: int) -> int:
    """The budget of a method: passes over a batch in a share `cutoff` of retraining.

    Retraining is `epochs` epochs over `n_retain` strings, with copies.

    Source: Are we making progress in unlearning?, section 4: a fifth of retraining.
    """
    return whole_part(cutoff * retraining_steps(epochs, n_retain, batch_size))


def whole_part(value: float) -> int:
    """The largest whole number up to a value.

    A rounding error may have put the value below a whole number, by up to 1e-6.
    """
    return math.floor(value + 1e-6)


class Step(Protocol):
    """A phase of a method, as a task runs it."""

    def add_strings(self, task: Task) -> None:
        """Add the strings that the phase needs beside the sets; before any phase prepares."""

    def prepare(self, task: Task) -> None:
        """Request the original models' outputs that the phase needs; before the first phase."""

    def run(self, task: Task) -> None:
        """Change the models of the task."""


@dataclass(frozen=True)
class ModelsBatch:
    """A batch for every model: inputs `ids_MBT` and targets `targets_MBT` (`IGNORED` is padding).

    `rows_MB` int[M, B] holds the rows of the strings in `Task.strings`.
    """

    ids_MBT: torch.Tensor
    targets_MBT: torch.Tensor
    rows_MB: np.ndarray


class Task:
    """Models on which the phases of a method run.

    `sets` maps the name of each set (`forget`, `retain`, `validation`) to rows of `strings`; a
    string with n copies occurs n times. `rate` is the peak learning rate of the model, or of its
    adapter. `seeds` has the entropy of the random numbers of each model. `budget` is the number of
    passes over a batch that a method may make (`passes_within`). `refused` gives, from rows of
    `strings` and some refusals, the prompt of each string with a refusal after it; None if no phase
    refuses anything.

    `steps` counts the passes that were made, and `phase_number` the phases that were begun.
    """

    def __init__(
        self,
        models: Models,
        strings: TokenisedStrings,
        sets: Mapping[str, np.ndarray],
        rate: float,
        batch_size: int,
        seeds: Sequence[tuple[int, ...]],
        budget: int,
        refused: Callable[[np.ndarray, Sequence[str]], TokenisedStrings] | None = None,
    ):
        if len(seeds) != models.count or len({len(seed) for seed in seeds}) != 1:
            raise ValueError(
                f"{len(seeds)} seeds for {models.count} models; give one seed per model, all of "
                "equal length"
            )
        self.models, self._refused = models, refused
        self.sets = {name: np.asarray(rows) for name, rows in sets.items()}
        self.rate, self.batch_size, self.budget = rate, batch_size, budget
        self.seeds = [tuple(map(int, seed)) for seed in seeds]
        self.reference = Reference(self)
        self.selected: Weights | None = None
        self._refusals: tuple[str, ...] | None = None
        self.steps, self.phase_number = 0, 0
        self._noisy: dict[float, torch.Tensor] = {}
        self._drawn: tuple[int, torch.Tensor | None] = (-1, None)
        self._optimizers = _Optimizers(models)
        self._observer: _Observer | None = None
        self._set_strings(strings)

    def _set_strings(self, strings: TokenisedStrings) -> None:
        self.strings = strings
        self._ids = torch.from_numpy(strings.ids).to(self.models.device)
        self._targets = torch.from_numpy(strings.targets).to(self.models.device)

    def refuse(self, refusals: tuple[str, ...]) -> None:
        """Add the set `REFUSED`; `refused_rows` int[strings] has its row of each forget string.

        Raises `UserError` if another phase of the method has other refusals.
        """
        if self._refusals not in (None, refusals):
            raise UserError("two phases of a method have different refusals; give both the same")
        if self._refusals is not None:
            return
        forget, n_strings = np.unique(self.sets[FORGET]), len(self.strings.lengths)
        self._refusals = refusals
        self._set_strings(self.strings.with_more(self._refused(forget, refusals)))
        self.sets[REFUSED] = n_strings + np.arange(len(forget))
        self.refused_rows = np.full(n_strings, -1)
        self.refused_rows[forget] = self.sets[REFUSED]

    @property
    def sizes(self) -> dict[str, int]:
        return {name: len(rows) for name, rows in self.sets.items()}

    def run(
        self,
        phases: Sequence[Step],
        progress: Callable[[int, int], None] | None = None,
        observe: Callable[[Task], None] | None = None,
        observations: int = 20,
    ) -> None:
        """Run phases one after another.

        Parameters
        ----------
        phases : an object that occurs several times is the same phase in several rounds, and keeps
            its optimiser's moments
        progress : called as `progress(done, of)` after each phase
        observe : called with this task after each phase, and in training whenever another
            `1 / observations` of the budget was used; it must not change the models
        """
        for name in sorted({name for phase in phases for name in phase.sets}):
            if not len(self.sets.get(name, ())):
                raise UserError(f"there is no string in the {name} set, and the method needs some")
        for phase in phases:
            phase.add_strings(self)
        for phase in phases:
            phase.prepare(self)
        self.reference.compute()
        self._optimizers = _Optimizers(self.models, phases)
        self._observer = _Observer(observe, max(1, self.budget) / observations) if observe else None
        for self.phase_number, phase in enumerate(phases, start=1):
            phase.run(self)
            if self._observer:
                self._observer.observe(self)
            if progress:
                progress(self.phase_number, len(phases))

    def use_optimizer(self, phase: Step, kind: str) -> None:
        """Continue with the optimiser of a phase's earlier round, or begin a new one."""
        self._optimizers.use(phase, kind)

    def observe_if_due(self) -> None:
        """Let the observer look between two steps, if enough passes were made since it last did."""
        if self._observer and self._observer.is_due(self.steps):
            self._observer.observe(self)

    # Batches

    def batches(self, name: str, phase_number: int, epoch: int) -> Iterator[ModelsBatch]:
        """One pass over a set; each model has its own order. Epochs are numbered from 1."""
        rows_MN = self._order(name, ORDER, phase_number, epoch)
        for first in range(0, rows_MN.shape[1], self.batch_size):
            yield self.batch(rows_MN[:, first : first + self.batch_size])

    def with_paired_batches(
        self, batches: Iterator[ModelsBatch], name: str, phase_number: int
    ) -> Iterator[tuple[ModelsBatch, ModelsBatch]]:
        """Pair each batch with a batch of equal size from another set.

        The other set is repeated as often as needed, each time in a new order.
        """
        rows_MN, epoch = np.empty((self.models.count, 0), dtype=int), 0
        for batch in batches:
            size = batch.rows_MB.shape[1]
            while rows_MN.shape[1] < size:
                epoch += 1
                more_MN = self._order(name, ORDER_BESIDE, phase_number, epoch)
                rows_MN = np.concatenate([rows_MN, more_MN], axis=1)
            yield batch, self.batch(rows_MN[:, :size])
            rows_MN = rows_MN[:, size:]

    def _order(self, name: str, stream: int, phase_number: int, epoch: int) -> np.ndarray:
        """The rows of a set [M, N], shuffled for each model."""
        generators = self._generators(stream, phase_number, epoch)
        return np.stack([generator.permutation(self.sets[name]) for generator in generators])

    def batch(self, rows_MB: np.ndarray) -> ModelsBatch:
        """The strings in the given rows, padded to the longest of them."""
        longest = int(self.strings.lengths[rows_MB].max())
        places = torch.from_numpy(rows_MB).to(self.models.device)
        return ModelsBatch(
            self._ids[places][..., : longest - 1],
            self._targets[places][..., 1:longest].contiguous(),
            rows_MB,
        )

    # Random numbers

    def generators(self, stream: int) -> list[np.random.Generator]:
        """A generator of random numbers for each model, for the current phase."""
        return self._generators(stream, self.phase_number, 0)

    def _generators(self, stream: int, phase_number: int, epoch: int) -> list[np.random.Generator]:
        return [np.random.default_rng([*seed, stream, phase_number, epoch]) for seed in self.seeds]

    # Tokens

    @cached_property
    def token_counts(self) -> np.ndarray:
        """How often each token is predicted in the retain set, int[vocabulary of the strings]."""
        targets = self._targets[torch.from_numpy(self.sets[RETAIN])][:, 1:]
        return np.bincount(targets[targets != IGNORED].cpu().numpy())

    @property
    def alphabet(self) -> np.ndarray:
        """The tokens in the retain set; random tokens are drawn from these."""
        return np.flatnonzero(self.token_counts)

    def random_targets(self, batch: ModelsBatch) -> torch.Tensor:
        """Random tokens [M, B, T] that replace a batch's targets; the same in a whole phase."""
        if self._drawn[0] != self.phase_number:
            self._drawn = self.phase_number, self._draw_tokens(self.phase_number)
        drawn_MBT = self._of(self._drawn[1], batch)[..., 1:]
        return torch.where(batch.targets_MBT == IGNORED, IGNORED, drawn_MBT)

    def noisy_ids(self, batch: ModelsBatch, share: float) -> torch.Tensor:
        """A batch's inputs [M, B, T] with a share of the tokens replaced by random ones.

        The start token stays. A string's noise is the same in every phase.
        """
        if share not in self._noisy:
            shape = self.strings.ids.shape
            generators = self._generators(NOISE, 0, 0)
            hit = torch.from_numpy(np.stack([g.random(shape) < share for g in generators]))
            hit[..., 0] = False
            self._noisy[share] = torch.where(
                hit.to(self.models.device), self._draw_tokens(0), self._ids
            )
        return self._of(self._noisy[share], batch)[..., :-1]

    def _draw_tokens(self, phase_number: int) -> torch.Tensor:
        """Random tokens of the alphabet [M, S, L] for all positions of all strings."""
        generators = self._generators(TOKENS, phase_number, 0)
        drawn = [g.choice(self.alphabet, self.strings.ids.shape) for g in generators]
        return torch.from_numpy(np.stack(drawn)).to(self.models.device)

    def _of(self, values_MSL: torch.Tensor, batch: ModelsBatch) -> torch.Tensor:
        """The entries [M, B, T + 1] that belong to a batch's strings."""
        models_M1 = torch.arange(self.models.count)[:, None]
        rows_MB = torch.from_numpy(batch.rows_MB)
        return values_MSL[models_M1, rows_MB][..., : batch.ids_MBT.shape[2] + 1]


class _Observer:
    """Calls `look` with the task, and knows when the next call is due."""

    def __init__(self, look: Callable[[Task], None], every: float):
        self._look, self._every, self._seen = look, every, 0

    def is_due(self, steps: int) -> bool:
        """Whether the passes crossed another multiple of `every` since the last call."""
        return whole_part(steps / self._every) > whole_part(self._seen / self._every)

    def observe(self, task: Task) -> None:
        self._look(task)
        self._seen = task.steps


class _Optimizers:
    """The optimisers of phases that run in several rounds; `phases` are all rounds to come.

    Moments are put aside only if another phase trains before the next round, because they take as
    much memory as the models.
    """

    def __init__(self, models: Models, phases: Sequence[Step] = ()):
        self._models = models
        self._rounds = Counter(map(id, phases))
        self._user: Step | None = None
        self._aside: dict[int, object] = {}

    def use(self, phase: Step, kind: str) -> None:
        self._rounds[id(phase)] -= 1
        if phase is self._user:
            return
        if self._rounds[id(self._user)] > 0:
            self._aside[id(self._user)] = self._models.optimizer_state()
        if id(phase) in self._aside:
            self._models.restore_optimizer(self._aside.pop(id(phase)))
        else:
            self._models.fresh_optimizer(kind)
        self._user = phase


class Reference:
    """Outputs of the original models: computed once, before the first phase, and kept in memory.

    A phase requests the outputs that it needs in `prepare`. An output that several phases request
    is computed once.
    """

    def __init__(self, task: Task):
        self._task = task
        self._wanted: dict[Hashable, _Wanted] = {}
        self._kept: dict[Hashable, torch.Tensor] = {}

    def keep_logits(self, name: str) -> None:
        self.keep("logits", name, lambda batch: self._task.models.logits(batch.ids_MBT))

    def keep_hidden(self, name: str, layer: int) -> None:
        models = self._task.models
        self.keep(("hidden", layer), name, lambda batch: models.hidden(batch.ids_MBT, layer))

    def keep_nll(self, name: str, first: int | None = None) -> None:
        """Keep -log p, one number per string, for the strings of a set or for its first `first`."""
        models = self._task.models

        def nll(batch: ModelsBatch) -> torch.Tensor:
            return string_nll(models.logits(batch.ids_MBT), batch.targets_MBT)

        self.keep("nll", name, nll, first)

    def logits(self, batch: ModelsBatch) -> torch.Tensor:
        """Logits [M, B, T, V] of the original models."""
        return self.of("logits", batch)

    def hidden(self, batch: ModelsBatch, layer: int) -> torch.Tensor:
        """Hidden states [M, B, T, D] of the original models after a layer."""
        return self.of(("hidden", layer), batch)

    def nll(self, batch: ModelsBatch) -> torch.Tensor:
        """-log p of the strings [M, B] under the original models."""
        return self._strings("nll", batch).to(batch.ids_MBT.device)

    def keep(
        self,
        kind: Hashable,
        name: str,
        compute: Callable[[ModelsBatch], torch.Tensor],
        first: int | None = None,
    ) -> None:
        """Keep the result of `compute` for a set's strings: [M, B, T, ...] or [M, B] per batch."""
        if self._task.phase_number:
            raise RuntimeError(
                "outputs of the original models can only be kept before the first phase"
            )
        n_strings = len(self._task.strings.lengths)
        wanted = self._wanted.setdefault(kind, _Wanted(compute, np.full(n_strings, -1)))
        wanted.places[self._task.sets[name][:first]] = 0

    def compute(self) -> None:
        """Compute the outputs that phases have requested, before any phase changes the models."""
        for kind, wanted in self._wanted.items():
            if kind not in self._kept:
                self._kept[kind] = self._outputs(wanted)

    def of(self, kind: Hashable, batch: ModelsBatch) -> torch.Tensor:
        """The outputs [M, B, T, ...] that were kept for the tokens of a batch."""
        values = self._strings(kind, batch)
        return values[:, :, : batch.ids_MBT.shape[2]].to(batch.ids_MBT.device)

    def _strings(self, kind: Hashable, batch: ModelsBatch) -> torch.Tensor:
        """The outputs that were kept for the strings of a batch, with their full length."""
        places_MB = self._wanted[kind].places[batch.rows_MB]
        if (places_MB < 0).any():
            raise RuntimeError(f"{kind}: was not kept for some strings of the batch")
        models_M1 = torch.arange(len(places_MB))[:, None]
        return self._kept[kind][models_M1, torch.from_numpy(places_MB)]

    def _outputs(self, wanted: _Wanted) -> torch.Tensor:
        """The requested outputs for the strings of every model, padded to the longest string.

        The longest strings are computed first, because they decide the size of the result.
        """
        task = self._task
        rows = np.flatnonzero(wanted.places >= 0)
        rows = rows[np.argsort(-task.strings.lengths[rows], kind="stable")]
        for first in range(0, len(rows), task.batch_size):
            some = rows[first : first + task.batch_size]
            batch = task.batch(np.tile(some, (task.models.count, 1)))
            with torch.no_grad():
                values = wanted.compute(batch)
            if not first:
                kept = torch.zeros(values.shape[0], len(rows), *values.shape[2:])
            room = kept[:, first : first + len(some)]
            room[(..., *map(slice, values.shape[2:]))] = values
        wanted.places[rows] = np.arange(len(rows))
        return kept


@dataclass(frozen=True)
class _Wanted:
    """An output to compute, and its strings: those whose entry in `places` int[S] is not -1."""

    compute: Callable[[ModelsBatch], torch.Tensor]
    places: np.ndarray
