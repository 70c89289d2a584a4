"""Unlearning: apply a method to original models and deliver the unlearned models' predictions.

Source: Are we making progress in unlearning?, section 2.1 and algorithm 1.
"""

from __future__ import annotations

import json
import time
import zlib
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
import torch

from palimpsest import tables
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.jobs.asking import Inquiry, ask
from palimpsest.jobs.bench import Bench, HolderOf, TrainedWeights
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.delivery import Files
from palimpsest.models import Models
from palimpsest.training.attempts import Attempts, Passes
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Run
from palimpsest.unlearning.kinds import UNLEARNED, UNLEARNED_MODELS
from palimpsest.unlearning.losses import cross_entropy
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.task import Task
from palimpsest.variants import ORIGINAL, RETAIN

AFTERWARDS = "relearn"  # the purpose, in seeds, of the batches of relearning
SETS = {"forget": "forget", "retain": "train", "validation": "validation"}  # set -> split


@dataclass(frozen=True)
class Part:
    """The unlearned models of one job, and the job's files.

    `origins` and `draws` name the unlearned models. They start from trained models of the variant
    `variant`, with the replicates `starts`.
    """

    origins: list[int]
    draws: list[int]
    variant: str
    starts: list[int]
    predictions: str
    models: str
    manifest: str

    @property
    def files(self) -> Files:
        """The files that the job delivers."""
        made = ((self.predictions, UNLEARNED), (self.models, UNLEARNED_MODELS))
        return Files(self.manifest, made)


@dataclass(frozen=True)
class Relearning:
    """Training the first `models` models on the forget set again, for at most `epochs` epochs."""

    models: int
    epochs: int


@dataclass(frozen=True)
class Unlearning:
    """The work of a job: a method, the models to which it is applied, and relearning afterwards."""

    method: Method
    part: Part
    relearning: Relearning

    def inquiry(self, assignment: Assignment, dataset: str, weights: list[str]) -> Inquiry:
        """The job as an inquiry; for the parameters see `unlearn`."""
        part = self.part
        about = {
            "method": self.method.name,
            "phases": json.loads(self.method.as_json()),
            "variant": part.variant,
            "starts": part.starts,
            "origins": part.origins,
            "draws": part.draws,
            "relearning": asdict(self.relearning),
        }
        n_models = len(part.origins)
        return Inquiry(
            self.method.name,
            "unlearning",
            assignment,
            dataset,
            weights,
            about,
            n_models,
            part.files,
        )

    def of_some(
        self, workbench: Workbench, trained: TrainedWeights, places: np.ndarray
    ) -> list[pd.DataFrame]:
        """The tables about the part's models with these indices."""
        wave = UnlearningWave(workbench, self.part, trained, places)
        wave.forget(self.method)
        wave.relearn(self.relearning)
        return wave.frames()


def unlearn(
    unlearning: Unlearning,
    assignment: Assignment,
    dataset: str,
    weights: list[str],
    attempts: Attempts | None = None,
) -> None:
    """Apply a method to some original models, and write the tables and the manifest.

    Parameters
    ----------
    unlearning : the method and the models
    assignment : the assignment with which the models were trained
    dataset : table of kind `strings`, the variant `original`
    weights : files with the weights of all trained models that the part names
    attempts : what earlier attempts at this job learned about the device's memory

    Raises `UserError` if weights are missing, if a model's loss is not finite, or if memory is too
    short for any attempt. Raises `OutOfMemory` if the next attempt can succeed.
    """
    ask(
        unlearning.inquiry(assignment, dataset, weights),
        unlearning.of_some,
        Workbench,
        attempts,
        loss_in=lambda workbench, frames: workbench.loss_in(frames[0]),
    )


def key_of_job(models: str, given: dict) -> str:
    """The key of a job's state, from the values of `palimpsest.requests.Unfinished`.

    Raises `UserError` if the models that the job starts from are not trained.
    """
    training = {key: value for key, value in given["training"].items() if key != "processes"}
    recipe = Recipe(given["learning_rate"], predict_end=given["predict_end"], **training)
    numbers = {name: given[name] for name in ("origins", "draws", "variant", "starts")}
    unlearning = Unlearning(
        Method.from_json(given["method"], given["phases"]),
        Part(**numbers, predictions="", models="", manifest=""),
        Relearning(**given["relearning"]),
    )
    assignment = Assignment(
        given["model"], models, given["corpus"], recipe, given["engine"], state=""
    )
    return unlearning.inquiry(assignment, given["dataset"], given["weights"]).state().key


class Workbench(Bench):
    """A bench with the sets of strings of an unlearning problem.

    `rows` maps the name of a set to the indices int[strings] of its strings in the dataset; a
    string with n copies occurs n times.
    """

    def __init__(self, run: Run, holder: HolderOf, passes: Passes | None = None):
        super().__init__(run, holder, passes)
        split = tables.read(run.dataset, STRINGS)["split"].to_numpy()
        self.rows = {
            name: np.repeat(np.flatnonzero(split == value), self._copies(split == value))
            for name, value in SETS.items()
        }
        if not self.material.counts[self.rows["forget"]].any():
            raise UserError(f"{run.dataset}: has no string to forget; it must be of `original`")

    def _copies(self, which: np.ndarray) -> np.ndarray:
        """How often each of some strings is in its set: its copies in training, or 1 if none."""
        return np.maximum(self.material.counts[which], 1)

    def task(self, models: Models, seeds: list[tuple[int, ...]]) -> Task:
        """The task on which the phases of a method run."""
        return Task(
            models,
            self.material.encoded,
            self.rows,
            rate=self.run.recipe.learning_rate,
            batch_size=self.run.recipe.batch_size,
            seeds=seeds,
        )

    def forget_loss(self, measured: np.ndarray) -> np.ndarray:
        """Loss float64[M], nats per token, over the forget set; `measured` is float64[M, 3, S]."""
        rows = self.rows["forget"]
        return measured[:, 0, rows].sum(1) / self.material.encoded.n_tokens[rows].sum()

    def loss_in(self, predictions: pd.DataFrame) -> float:
        """Loss in nats per token over the forget strings of a table `unlearned`, for the log."""
        names = self.material.string_ids[np.unique(self.rows["forget"])]
        there = predictions[predictions["string_id"].isin(names)]
        return float(there["nll"].sum() / there["n_tokens"].sum())


class UnlearningWave:
    """Models that unlearn at the same time, from their start to the rows of their tables."""

    def __init__(
        self, workbench: Workbench, part: Part, trained: TrainedWeights, places: np.ndarray
    ):
        self.workbench, self.trained = workbench, trained
        self.origins = np.array(part.origins)[places]
        self.draws = np.array(part.draws)[places]
        # Under reuse-n-1, one original model is unlearned many times. Then there are fewer original
        # than retrained models, and a model of the ideal may have no original model.
        there = [part.variant != RETAIN or trained.has(ORIGINAL, draw) for draw in self.origins]
        self.beside = {ORIGINAL: np.array(there), RETAIN: np.ones(len(places), dtype=bool)}
        self.models: Models = workbench.holder.open(
            [trained.of(part.variant, draw) for draw in np.array(part.starts)[places]]
        )

    def forget(self, method: Method) -> None:
        """Apply the method; record its costs, the models' predictions and the distances."""
        workbench = self.workbench
        task = workbench.task(self.models, self._seeds(method.name))
        started = time.perf_counter()
        task.run(method.phases)
        self.seconds = (time.perf_counter() - started) / len(self.origins)
        self.steps, self.method = task.steps, method.name
        self.measured = workbench.measure(self.models)
        if not np.isfinite(self.measured).all():
            raise UserError(
                f"{method.name} on {workbench.run.model}: the loss is no longer finite; lower the "
                "method's rates in unlearning/table"
            )
        self.distance = {variant: self._distance(variant) for variant in (ORIGINAL, RETAIN)}

    def relearn(self, relearning: Relearning) -> None:
        """Train the first models on the forget set until their loss is as low as the original's."""
        self.relearned = np.full(len(self.origins), np.nan)
        tried = np.flatnonzero(
            (self.draws == 0) & (self.origins < relearning.models) & self.beside[ORIGINAL]
        )
        if not len(tried):
            return
        workbench, rate = self.workbench, self.workbench.run.recipe.learning_rate
        originals = [self.trained.of(ORIGINAL, draw) for draw in self.origins[tried]]
        forget = workbench.rows["forget"]
        unlearned = [self._weights_of(place) for place in tried]
        # An engine may hold only the models that were opened last.
        before = workbench.measure(workbench.holder.open(originals), forget)
        goal = workbench.forget_loss(before)
        models = workbench.holder.open(unlearned)
        task = workbench.task(models, [self._seeds(AFTERWARDS)[place] for place in tried])
        losses = [workbench.forget_loss(self.measured[tried])]
        while not (losses[-1] <= goal).all() and len(losses) <= relearning.epochs:
            for batch in task.batches("forget", 0, epoch=len(losses)):
                loss_M = cross_entropy(models.logits(batch.ids_MBT), batch.targets_MBT)
                models.step(loss_M, torch.full((models.count,), rate))
            losses.append(workbench.forget_loss(workbench.measure(models, forget)))
        reached = np.stack(losses) <= goal
        self.relearned[tried] = np.where(reached.any(axis=0), reached.argmax(axis=0), np.inf)

    def frames(self) -> list[pd.DataFrame]:
        """The wave's tables of kinds `unlearned` and `unlearned_models`."""
        material = self.workbench.material
        n_models, _, n_strings = self.measured.shape
        nll, n_correct, rank_sum = self.measured.transpose(1, 0, 2).reshape(3, -1)
        which = {"origin": self.origins, "draw": self.draws}
        predictions = {
            **{key: np.repeat(values, n_strings) for key, values in which.items()},
            "string_id": np.tile(material.string_ids, n_models),
            "nll": nll,
            "n_tokens": np.tile(material.encoded.n_tokens, n_models),
            "n_correct": n_correct.astype(np.int64),
            "rank_sum": rank_sum.astype(np.int64),
        }
        of_models = {
            **which,
            "steps": self.steps,
            "seconds": self.seconds,
            "distance_to_original": self.distance[ORIGINAL],
            "distance_to_retrained": self.distance[RETAIN],
            "relearn_epochs": self.relearned,
        }
        keys = {**self.workbench.keys, "method": self.method}
        return [pd.DataFrame({**keys, **columns}) for columns in (predictions, of_models)]

    def _seeds(self, purpose: str) -> list[tuple[int, ...]]:
        """Seeds of each model's random numbers: the problem's seed, purpose, origin and draw."""
        first = self.workbench.keys["seed"], zlib.crc32(purpose.encode())
        pairs = zip(self.origins, self.draws, strict=True)
        return [(*first, int(origin), int(draw)) for origin, draw in pairs]

    def _weights_of(self, place: int) -> dict[str, torch.Tensor]:
        with self.models.weights() as weights:
            return {name: tensor[place].to("cpu", copy=True) for name, tensor in weights.items()}

    def _distance(self, variant: str) -> np.ndarray:
        """L2 distance float64[models] of all weights from the paired model; NaN without one."""
        squares = np.full(len(self.origins), np.nan)
        with self.models.weights() as weights:
            for place in np.flatnonzero(self.beside[variant]):
                other = self.trained.of(variant, self.origins[place])
                squares[place] = sum(
                    float((tensor[place].double().cpu() - other[name].double()).square().sum())
                    for name, tensor in weights.items()
                )
        return np.sqrt(squares)
