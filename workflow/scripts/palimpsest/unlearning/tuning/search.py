"""The search for the settings of methods: every method tries equally many points of its grid.

The problems of the search are in no evaluation.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from palimpsest.jobs.bench import TrainedWeights
from palimpsest.jobs.query import Question, joint_query
from palimpsest.unlearning.interventions import ORIGINAL
from palimpsest.unlearning.kinds import SEARCHED
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.methods.sets import FORGET, RETAIN, UNSEEN
from palimpsest.unlearning.run.setups import NONE
from palimpsest.unlearning.run.workbench import MEASURED, Workbench


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

    @property
    def question(self) -> Question:
        about = {
            "method": self.method,
            "points": {name: method.written for name, method in self.points.items()},
            "n": self.n,
            "cutoff": self.cutoff,
        }
        n_models = self.n * len(self.points)
        return Question(f"search-{self.method}", about, n_models, self.of_some)

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


@joint_query("unlearning", SEARCHED, make_bench=Workbench)
def search(
    *, points: Mapping[str, Mapping[str, list[dict]]], n: int, cutoff: float
) -> Iterator[Question]:
    """Apply every point of all methods to `n` original models.

    `points` are the phases of each method's points. `cutoff` is the largest share of the steps of
    retraining that a point may take.
    """
    for method, phases in points.items():
        methods = {name: Method.of(name, each) for name, each in {NONE: [], **phases}.items()}
        yield Search(method, methods, n, cutoff).question
