"""A wave: models that unlearn at the same time, from their start to the rows of their tables."""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterable, Iterator

import numpy as np
import pandas as pd
import torch

from palimpsest.errors import UserError
from palimpsest.jobs.bench import TrainedWeights
from palimpsest.models import Models
from palimpsest.unlearning.interventions import ORIGINAL
from palimpsest.unlearning.interventions import RETAIN as RETAINED
from palimpsest.unlearning.kinds import STAGES
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.methods.losses import cross_entropy
from palimpsest.unlearning.methods.sets import FORGET
from palimpsest.unlearning.methods.task import ModelsBatch, Task
from palimpsest.unlearning.run.method_models import Curve, MethodModels, Relearning
from palimpsest.unlearning.run.rounding import rounded_to_4_bits
from palimpsest.unlearning.run.workbench import MEASURED, Workbench

AFTERWARDS = "relearn"  # the purpose, in seeds, of the batches of relearning
UNLEARNING, ROUNDED, RELEARNING = "unlearning", "4-bit", "relearning"  # the stages


class UnlearningWave:
    """Models that unlearn at the same time."""

    def __init__(
        self, workbench: Workbench, part: MethodModels, trained: TrainedWeights, places: np.ndarray
    ):
        self.workbench, self.trained = workbench, trained
        self.origins = np.array(part.origins)[places]
        self.unlearning_replicates = np.array(part.unlearning_replicates)[places]
        self.starts = np.array(part.starts)[places]
        self.variant = part.variant
        # Under reuse-n-1, one original model is unlearned many times. Then there are fewer original
        # than retrained models, and a model of the ideal may have no original model.
        there = [part.variant != RETAINED or trained.has(ORIGINAL, one) for one in self.origins]
        self.has_paired = {ORIGINAL: np.array(there), RETAINED: np.ones(len(places), dtype=bool)}
        self.models = self._opened(np.arange(len(places)))
        self._stages: list[pd.DataFrame] = []

    def _opened(self, places: np.ndarray) -> Models:
        """Some of the models, as they are before unlearning."""
        return self.workbench.holder.open(
            [self.trained.of(self.variant, start) for start in self.starts[places]]
        )

    def forget(self, method: Method, cutoff: float) -> None:
        workbench = self.workbench
        task = workbench.task(self.models, self._seeds(method.name), cutoff)
        started = time.perf_counter()
        task.run(method.phases)
        self.seconds = (time.perf_counter() - started) / len(self.origins)
        self.steps, self.method = task.steps, method.name
        self.measured, self.scores = workbench.measure_with_scores(self.models)
        if not np.isfinite(self.measured).all():
            raise UserError(
                f"{method.name} on {workbench.run.model}: the loss is no longer finite; lower the "
                "method's rates in unlearning/table"
            )
        self.distance = {variant: self._distance(variant) for variant in (ORIGINAL, RETAINED)}

    def keep(self, n: int) -> None:
        """Keep the weights of the first `n` models as they are now, for what follows."""
        self._ended = {place: weights_of(self.models, place) for place in self._first(n)}

    def _first(self, n: int) -> np.ndarray:
        """Indices of the models of the first `n` origins, each origin's first unlearning only."""
        return np.flatnonzero((self.unlearning_replicates == 0) & (self.origins < n))

    # Stages

    def follow(self, method: Method, cutoff: float, curve: Curve) -> None:
        """Apply the method to the first models again, and measure them on the way.

        The method does the same to them as before, because a model's random numbers are its own.
        """
        places = self._first(curve.models)
        if not len(places) or not method.phases:
            return
        models = self._opened(places)
        seeds = self._seeds(method.name)
        task = self.workbench.task(models, [seeds[place] for place in places], cutoff)
        phases = [placed.place for placed in method.placed]
        self._measured_stage(UNLEARNING, None, 0, places, models)

        def observe(task: Task) -> None:
            phase = phases[task.phase_number - 1]
            self._measured_stage(UNLEARNING, phase, task.steps, places, models)

        task.run(method.phases, observe=observe, observations=curve.points)

    def round_weights(self, n: int) -> None:
        places = self._first(n)
        if not len(places):
            return
        models = self.workbench.holder.open([self._ended[place] for place in places])
        round_to_4_bits(models)
        self._measured_stage(ROUNDED, None, 0, places, models)

    def relearn(self, relearning: Relearning) -> None:
        """Train the first models on the forget set, and find when they know it as before.

        A model knows the forget set as before if its loss is as low as the original model's.
        """
        self.relearned = np.full(len(self.origins), np.nan)
        self.relearn_limit = np.full(len(self.origins), np.nan)
        places = self._first(relearning.models)
        places = places[self.has_paired[ORIGINAL][places]]
        if not len(places):
            return
        workbench, rate = self.workbench, self.workbench.run.recipe.peak_rate
        originals = [self.trained.of(ORIGINAL, one) for one in self.origins[places]]
        # An engine may hold only the models that were opened last.
        goal = workbench.losses(workbench.holder.open(originals), (FORGET,))[FORGET]
        models = workbench.holder.open([self._ended[place] for place in places])
        seeds = self._seeds(AFTERWARDS)
        task = workbench.task(models, [seeds[place] for place in places], cutoff=0)
        losses = [workbench.set_loss(FORGET, self.measured[places])]
        self._add_stage(RELEARNING, None, 0, places, {FORGET: losses[0]})
        for step in steps_of_relearning(task, relearning.steps, rate):
            losses.append(workbench.losses(models, (FORGET,))[FORGET])
            self._add_stage(RELEARNING, None, step, places, {FORGET: losses[-1]})
        reached = np.stack(losses) <= goal
        self.relearned[places] = np.where(reached.any(axis=0), reached.argmax(axis=0), np.inf)
        self.relearn_limit[places] = relearning.steps

    def _measured_stage(
        self, stage: str, phase: str | None, passes: int, places: np.ndarray, models: Models
    ) -> None:
        self._add_stage(stage, phase, passes, places, self.workbench.losses(models, MEASURED))

    def _add_stage(
        self,
        stage: str,
        phase: str | None,
        passes: int,
        places: np.ndarray,
        losses: dict[str, np.ndarray],
    ) -> None:
        """Keep rows of `unlearning_stages`; `losses` has float64[places] by the name of a set."""
        of_sets = {f"{name}_loss": losses.get(name, np.nan) for name in MEASURED}
        which = {
            "origin": self.origins[places],
            "unlearning_replicate": self.unlearning_replicates[places],
        }
        about = {"stage": stage, "phase": phase, "passes": passes}
        self._stages.append(pd.DataFrame({**which, **about, **of_sets}))

    # Tables

    def frames(self) -> list[pd.DataFrame]:
        """The wave's tables of kinds `unlearned`, `unlearned_models` and `unlearning_stages`."""
        material = self.workbench.material
        n_models, _, n_strings = self.measured.shape
        nll, n_correct, rank_sum = self.measured.transpose(1, 0, 2).reshape(3, -1)
        which = {"origin": self.origins, "unlearning_replicate": self.unlearning_replicates}
        predictions = {
            **{key: np.repeat(values, n_strings) for key, values in which.items()},
            "string_id": np.tile(material.string_ids, n_models),
            "nll": nll,
            "n_tokens": np.tile(material.encoded.n_tokens, n_models),
            "n_correct": n_correct.astype(np.int64),
            "rank_sum": rank_sum.astype(np.int64),
            **{name: values.ravel() for name, values in self.scores.items()},
        }
        predictions["n_last_correct"] = predictions["n_last_correct"].astype(np.int64)
        of_models = {
            **which,
            "steps": self.steps,
            "seconds": self.seconds,
            "distance_to_original": self.distance[ORIGINAL],
            "distance_to_retrained": self.distance[RETAINED],
            "relearn_steps": self.relearned,
            "relearn_limit": self.relearn_limit,
        }
        keys = {**self.workbench.keys, "method": self.method}
        found = [pd.DataFrame({**keys, **columns}) for columns in (predictions, of_models)]
        return [*found, self._stage_table(keys)]

    def _stage_table(self, keys: dict) -> pd.DataFrame:
        if not self._stages:
            return pd.DataFrame({name: [] for name in STAGES.names}).astype({"phase": object})
        by_model = {
            "by": ["origin", "unlearning_replicate"],
            "kind": "stable",
            "ignore_index": True,
        }
        stages = pd.concat(self._stages).sort_values(**by_model)
        return stages.assign(**keys)[STAGES.names]

    # Models

    def _seeds(self, purpose: str) -> list[tuple[int, ...]]:
        return seeds_of(
            self.workbench.keys["seed"], purpose, self.origins, self.unlearning_replicates
        )

    def _distance(self, variant: str) -> np.ndarray:
        """L2 distance float64[models] of all weights from the paired model; NaN without one."""
        squares = np.full(len(self.origins), np.nan)
        with self.models.weights() as weights:
            for place in np.flatnonzero(self.has_paired[variant]):
                other = self.trained.of(variant, self.origins[place])
                squares[place] = sum(
                    float((tensor[place].double().cpu() - other[name].double()).square().sum())
                    for name, tensor in weights.items()
                )
        return np.sqrt(squares)


def seeds_of(
    seed: int, purpose: str, origins: Iterable[int], unlearning_replicates: Iterable[int]
) -> list[tuple[int, ...]]:
    """Seeds of models' random numbers, from the problem's seed and a purpose, such as a method."""
    first = seed, zlib.crc32(purpose.encode())
    return [
        (*first, int(origin), int(replicate))
        for origin, replicate in zip(origins, unlearning_replicates, strict=True)
    ]


def weights_of(models: Models, place: int) -> dict[str, torch.Tensor]:
    """A copy of one model's weights."""
    with models.weights() as weights:
        return {name: tensor[place].to("cpu", copy=True) for name, tensor in weights.items()}


def round_to_4_bits(models: Models) -> None:
    """Round all matrices of some models, see `rounded_to_4_bits`."""
    with models.weights() as weights:
        for name, weight in weights.items():
            if len(models.shapes[name]) > 1:
                weight.copy_(rounded_to_4_bits(weight))


def steps_of_relearning(task: Task, n: int, rate: float) -> Iterator[int]:
    """Train the models of a task on its forget set for n steps; the number of each, from 1."""
    models = task.models
    for step, batch in enumerate(_batches(task, n), start=1):
        loss_M = cross_entropy(models.logits(batch.ids_MBT), batch.targets_MBT)
        models.step(loss_M, torch.full((models.count,), rate))
        yield step


def _batches(task: Task, n: int) -> Iterator[ModelsBatch]:
    epoch = 0
    while n > 0:
        epoch += 1
        for batch in task.batches(FORGET, 0, epoch):
            if n == 0:
                return
            n -= 1
            yield batch
