"""Unlearning: apply methods to original models and deliver the unlearned models' predictions.

Source: Are we making progress in unlearning?, section 2.1 and algorithm 1.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from palimpsest.jobs.bench import TrainedWeights
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.model_queries import ModelQuery, run_model_queries
from palimpsest.training.attempts import Attempts
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.run.parts import Afterwards, Part
from palimpsest.unlearning.run.wave import UnlearningWave
from palimpsest.unlearning.run.workbench import Workbench


@dataclass(frozen=True)
class Unlearning:
    """The work of a job with one method: the models to which it is applied, and what follows."""

    method: Method
    part: Part
    afterwards: Afterwards

    def query(self, assignment: Assignment, dataset: str, weights: list[str]) -> ModelQuery:
        """The job as a query; for the parameters see `unlearn`."""
        part = self.part
        about = {
            "method": self.method.name,
            "phases": self.method.written,
            "variant": part.variant,
            "starts": part.starts,
            "origins": part.origins,
            "draws": part.draws,
            "afterwards": asdict(self.afterwards),
        }
        return ModelQuery(
            self.method.name,
            "unlearning",
            assignment,
            dataset,
            weights,
            about,
            len(part.origins),
            part.files,
            self.of_some,
        )

    def of_some(
        self, workbench: Workbench, trained: TrainedWeights, places: np.ndarray
    ) -> list[pd.DataFrame]:
        """The tables about the part's models with these indices."""
        wave = UnlearningWave(workbench, self.part, trained, places)
        wave.forget(self.method, self.afterwards.cutoff)
        wave.keep(self.afterwards.relearn.models)
        wave.follow(self.method, self.afterwards.cutoff, self.afterwards.curve)
        wave.round_weights(self.afterwards.relearn.models)
        wave.relearn(self.afterwards.relearn)
        return wave.frames()


def unlearn(
    unlearnings: Sequence[Unlearning],
    assignment: Assignment,
    dataset: str,
    weights: list[str],
    attempts: Attempts | None = None,
) -> None:
    """Apply methods to some original models, and write their tables and manifests.

    Parameters
    ----------
    unlearnings : the methods, each with its models
    assignment : the assignment with which the models were trained
    dataset : table of kind `strings`, the variant `original`
    weights : files with the weights of all trained models that the parts name
    attempts : what earlier attempts at this job learned about the device's memory

    Raises `UserError` if weights are missing, if a model's loss is not finite, or if memory is too
    short for any attempt. Raises `OutOfMemory` if the next attempt can succeed.
    """
    run_model_queries(
        [one.query(assignment, dataset, weights) for one in unlearnings],
        Workbench,
        attempts,
        loss_in=lambda workbench, frames: workbench.loss_in(frames[0]),
    )


def key_of_job(models: str, given: dict) -> str:
    """The key of the state of one method in a job, from `palimpsest.requests.Unfinished`.

    Raises `UserError` if the models that the job starts from are not trained.
    """
    unlearning = Unlearning(
        Method.from_json(given["method"], json.dumps(given["phases"])),
        Part(**given["part"]),
        Afterwards.of(given["afterwards"]),
    )
    assignment = Assignment.of_unfinished(models, given)
    return unlearning.query(assignment, given["dataset"], given["weights"]).state().key
