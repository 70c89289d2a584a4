"""The search for the settings of methods: every method tries equally many points of its grid.

The problems of the search are in no evaluation.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest.jobs.bench import TrainedWeights
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.delivery import Files
from palimpsest.jobs.model_queries import ModelQuery, run_model_queries
from palimpsest.training.attempts import Attempts
from palimpsest.unlearning.interventions import ORIGINAL
from palimpsest.unlearning.kinds import SEARCHED
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.methods.sets import FORGET, RETAIN
from palimpsest.unlearning.run.setups import NONE
from palimpsest.unlearning.run.workbench import MEASURED, UNSEEN, Workbench


@dataclass(frozen=True)
class Search:
    """The work of a job with one method: its points, each applied to the same original models.

    `points` maps the name of a point to its phases; the first point, `none`, has no phases. The
    models of the job are numbered by point and, within a point, by origin.
    """

    method: str
    points: Mapping[str, Method]
    n: int
    cutoff: float
    table: str = ""
    manifest: str = ""

    @classmethod
    def of(
        cls,
        method: str,
        points: Mapping[str, list[dict]],
        n: int,
        cutoff: float,
        table: str = "",
        manifest: str = "",
    ) -> Search:
        phases = {NONE: [], **points}
        methods = {name: Method.from_json(name, json.dumps(each)) for name, each in phases.items()}
        return cls(method, methods, n, cutoff, table, manifest)

    def query(self, assignment: Assignment, dataset: str, weights: list[str]) -> ModelQuery:
        """The job as a query; for the parameters see `search`."""
        about = {
            "method": self.method,
            "points": {name: method.written for name, method in self.points.items()},
            "n": self.n,
            "cutoff": self.cutoff,
        }
        return ModelQuery(
            f"search-{self.method}",
            "unlearning",
            assignment,
            dataset,
            weights,
            about,
            self.n * len(self.points),
            Files(self.manifest, ((self.table, SEARCHED),)),
            self.of_some,
        )

    def of_some(
        self, workbench: Workbench, trained: TrainedWeights, places: np.ndarray
    ) -> list[pd.DataFrame]:
        """The table about the job's models with these numbers."""
        names = list(self.points)
        points, origins = np.divmod(places, self.n)
        parts = [
            self._of_point(workbench, trained, names[point], origins[points == point])
            for point in np.unique(points)
        ]
        return [pd.concat(parts)]

    def _of_point(
        self, workbench: Workbench, trained: TrainedWeights, point: str, origins: np.ndarray
    ) -> pd.DataFrame:
        models = workbench.holder.open([trained.of(ORIGINAL, origin) for origin in origins])
        first = workbench.keys["seed"], zlib.crc32(point.encode())
        seeds = [(*first, int(origin)) for origin in origins]
        task = workbench.task(models, seeds, self.cutoff)
        task.run(self.points[point].phases)
        rows = np.unique(np.concatenate([workbench.rows[name] for name in MEASURED]))
        # A setting that ruins a model may make its losses infinite; the search then ranks it last.
        measured = np.nan_to_num(workbench.measure(models, rows), nan=np.inf)
        forget = np.unique(workbench.rows[FORGET])
        material = workbench.material
        return pd.DataFrame(
            {
                **workbench.keys,
                "method": self.method,
                "point": point,
                "origin": np.repeat(origins, len(forget)),
                "string_id": np.tile(material.string_ids[forget], len(origins)),
                "loss": (measured[:, 0, forget] / material.encoded.n_tokens[forget]).ravel(),
                **{
                    f"{name}_loss": np.repeat(workbench.set_loss(name, measured), len(forget))
                    for name in (RETAIN, UNSEEN)
                },
                "steps": task.steps,
            }
        )


def search(
    searches: Sequence[Search],
    assignment: Assignment,
    dataset: str,
    weights: list[str],
    attempts: Attempts | None = None,
) -> None:
    """Apply every point of some methods to original models, and write a table for each method.

    Parameters
    ----------
    searches : the methods with their points
    assignment : the assignment with which the models were trained
    dataset : table of kind `strings`, the variant `original`
    weights : files with the weights of the original models
    attempts : what earlier attempts at this job learned about the device's memory

    Raises as `palimpsest.unlearning.run.unlearn.unlearn`.
    """
    run_model_queries(
        [one.query(assignment, dataset, weights) for one in searches],
        Workbench,
        attempts,
    )


def key_of_job(models: str, given: dict) -> str:
    """The key of the state of one method in a job, from `palimpsest.requests.Unfinished`.

    Raises `UserError` if the original models of the problem are not trained.
    """
    assignment = Assignment.of_unfinished(models, given)
    one = Search.of(given["method"], given["points"], given["n"], given["cutoff"])
    return one.query(assignment, given["dataset"], given["weights"]).state().key
