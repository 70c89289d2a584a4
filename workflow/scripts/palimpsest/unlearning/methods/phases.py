"""The base classes of phases, and the registry of all phases.

A phase is a small class in any file of this folder:

    @phase("gradient-ascent")
    class GradientAscent(Training):
        over = FORGET

        def loss(self, task, batch, paired_batch):
            return -cross_entropy(task.models.logits(batch.ids_MBT), batch.targets_MBT)
"""

from __future__ import annotations

import dataclasses
import importlib
import itertools
import os
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, dataclass_transform

from palimpsest.allowed import Number
from palimpsest.errors import UserError
from palimpsest.lazy_import import lazy_import
from palimpsest.models.trained import ADAMW, OPTIMIZERS
from palimpsest.unlearning.methods.task import whole_part
from palimpsest.unlearning.methods.values import DOMAIN, Choice, Texts, choice, number

if TYPE_CHECKING:
    from palimpsest.models.trained import Weights
    from palimpsest.unlearning.methods.task import ModelsBatch, Task

torch = lazy_import("torch")

ERASE, REPAIR = ROLES = ("erase", "repair")

_registry: dict[str, type[Phase]] = {}
_listed: dict[str, int] = {}  # the folders that were searched, with their dates


@dataclass_transform(kw_only_default=True, frozen_default=True)
def phase(name: str) -> Callable[[type[Phase]], type[Phase]]:
    """Register a phase under its name in the table of methods."""

    def register(cls: type[Phase]) -> type[Phase]:
        cls = dataclass(frozen=True, kw_only=True)(cls)
        cls.name = name
        if "beside" in vars(cls):
            raise UserError(f"{cls.__module__}: {name}: 'beside' has a new name: 'paired_set'")
        known = _registry.get(name)
        if known and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise ValueError(f"{cls.__module__}: the phase {name!r} is in {known.__module__} too")
        bare = [field.name for field in dataclasses.fields(cls) if DOMAIN not in field.metadata]
        if bare:
            raise ValueError(f"{cls.__module__}: {name}: say what {bare[0]!r} may be: number(...)")
        _registry[name] = cls
        return cls

    return register


def registered() -> dict[str, type[Phase]]:
    package = importlib.import_module(__package__)
    dates = {folder: os.stat(folder).st_mtime_ns for folder in package.__path__}
    # Called a thousand times before the graph of jobs is built; files are rarely added meanwhile.
    if _listed != dates:
        for module in pkgutil.iter_modules(package.__path__):
            importlib.import_module(f"{__package__}.{module.name}")
        _listed.clear()
        _listed.update(dates)
    return dict(sorted(_registry.items()))


@dataclass(frozen=True, kw_only=True)
class Phase:
    """A part of a method that changes the models of a task.

    Its fields are the phase's keys in the table of methods.
    """

    name: ClassVar[str]
    needs_selection: ClassVar[bool] = False
    selects: ClassVar[bool] = False
    works_on_symbols: ClassVar[bool] = True

    @classmethod
    def domains(cls) -> dict[str, Number | Choice | Texts]:
        return {field.name: field.metadata[DOMAIN] for field in dataclasses.fields(cls)}

    @property
    def works_on_every_weight(self) -> str:
        """What the phase does with every weight as it trains, which adapters rule out; or empty."""
        return ""

    @property
    def sets(self) -> tuple[str, ...]:
        """The sets of strings that the phase reads."""
        return ()

    def add_strings(self, task: Task) -> None:
        """Add the strings that the phase needs beside the sets; before any phase prepares."""

    def prepare(self, task: Task) -> None:
        """Request outputs of the original models, before any phase changes the models."""

    def run(self, task: Task) -> None:
        raise NotImplementedError


class Edit(Phase):
    """Changes the selected weights, without training."""

    needs_selection = True

    def run(self, task: Task) -> None:
        with task.models.weights() as weights:
            self.edit(task, weights)

    def edit(self, task: Task, weights: Weights) -> None:
        """Change `weights` in place where `task.selected` is true."""
        raise NotImplementedError


class Select(Phase):
    """Selects weights, which later phases edit, or train more than others."""

    selects = True

    def run(self, task: Task) -> None:
        task.selected = self.select(task)

    def select(self, task: Task) -> Weights:
        """True for selected weights, for each parameter that could be selected."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class Training(Phase):
    """Steps of an optimiser over a set of strings; a subclass defines the loss.

    `share` is the share of the method's budget of passes that one run of the phase takes, at least
    one step. `rate` multiplies the model's peak learning rate, so that one table fits all models;
    the learning rate is constant. The optimiser's moments start at 0 when the phase runs first, and
    are kept for its next run in a `repeat`. If `paired_set` names a second set, each step also has
    an equal number of strings from that set. `elsewhere` multiplies the *update* of weights that
    could be selected, but were not. A multiplier of their gradient would have no effect with AdamW,
    which divides by the size of the gradient.
    """

    over: ClassVar[str]
    paired_set: ClassVar[str | None] = None

    share: float = number(above=0, most=1)
    rate: float = number(above=0, most=1000)
    elsewhere: float = number(1.0, least=0, most=1)
    optimizer: str = choice(OPTIMIZERS, ADAMW)

    @property
    def needs_selection(self) -> bool:
        """Whether a phase before this one must have selected weights."""
        return self.elsewhere != 1

    @property
    def works_on_every_weight(self) -> str:
        return "slows weights that are not selected (elsewhere)" if self.elsewhere != 1 else ""

    @property
    def sets(self) -> tuple[str, ...]:
        return (self.over,) if self.paired_set is None else (self.over, self.paired_set)

    def steps(self, budget: int) -> int:
        return max(1, whole_part(self.share * budget / self.passes_per_step))

    @property
    def passes_per_step(self) -> int:
        """Passes over a batch per step; single strings that a phase adds do not count."""
        return 1 if self.paired_set is None else 2

    def loss(
        self, task: Task, batch: ModelsBatch, paired_batch: ModelsBatch | None
    ) -> torch.Tensor:
        """The loss [M] of each model on its own batch; `paired_batch` may be None."""
        raise NotImplementedError

    def rate_M(self, task: Task, batch: ModelsBatch) -> torch.Tensor:
        return torch.full((task.models.count,), self.rate * task.rate, dtype=torch.float64)

    def run(self, task: Task) -> None:
        task.use_optimizer(self, self.optimizer)
        for batch, paired_batch in self._batches(task):
            task.observe_if_due()
            loss_M = self.loss(task, batch, paired_batch)
            task.steps += self.passes_per_step
            self.step(task, loss_M, self.rate_M(task, batch))

    def _batches(self, task: Task) -> Iterator[tuple[ModelsBatch, ModelsBatch | None]]:
        epochs = itertools.chain.from_iterable(
            task.batches(self.over, task.phase_number, epoch) for epoch in itertools.count(1)
        )
        batches = itertools.islice(epochs, self.steps(task.budget))
        if self.paired_set is None:
            return ((batch, None) for batch in batches)
        return task.with_paired_batches(batches, self.paired_set, task.phase_number)

    def step(self, task: Task, loss_M: torch.Tensor, rate_M: torch.Tensor) -> None:
        if self.elsewhere == 1:
            task.models.step(loss_M, rate_M)
            return
        with task.models.weights() as weights:
            before = {name: weights[name].clone() for name in task.selected}
        task.models.step(loss_M, rate_M)
        with task.models.weights() as weights:
            for name, selected in task.selected.items():
                slower = torch.lerp(before[name], weights[name], self.elsewhere)
                weights[name].copy_(torch.where(selected, weights[name], slower))
