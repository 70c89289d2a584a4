"""Entropy and mutual information of a model's neurons, after every epoch of its fine-tuning.

Source: the paper on information measures of neurons, appendix A.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.information.activations import Where, activations_of
from palimpsest.information.kinds import LAYERS
from palimpsest.information.measured import means, neurons_of, pairs_of
from palimpsest.jobs.asking import Asked, Inquiry, ask
from palimpsest.jobs.bench import Bench, TrainedWeights
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.delivery import Files
from palimpsest.training.attempts import Attempts
from palimpsest.training.kept_weights import weights_by_epoch


@dataclass(frozen=True)
class How:
    """How neurons are measured: bins of the entropy, nearest neighbour, and pairs of a site."""

    bins: int
    neighbours: int
    pairs: int | str


@dataclass(frozen=True)
class FineTuned:
    """One run to measure: its dataset, the folder with its weights, and the files to write."""

    dataset: str
    checkpoints: str
    layers: str = ""
    manifest: str = ""

    def inquiry(self, assignment: Assignment, where: Where, how: How) -> Inquiry:
        """The job as an inquiry, whose models are those after each epoch."""
        files = weights_by_epoch(self.checkpoints)
        return Inquiry(
            name="layers",
            section="information",
            assignment=assignment,
            dataset=self.dataset,
            weights=[str(path) for path in files.values()],
            about={**where.about(), **asdict(how), "epochs": list(files)},
            n_models=len(files),
            files=Files(self.manifest, ((self.layers, LAYERS),)),
        )


def measure(
    runs: Iterable[FineTuned],
    where: Where,
    how: How,
    assignment: Assignment,
    attempts: Attempts | None = None,
) -> None:
    """Measure the models of some runs after every epoch, and write the table of each run.

    Raises `UserError` if weights are missing, if a model lacks a site, or if memory is too short
    for any attempt.
    """
    for run in runs:
        epochs = list(weights_by_epoch(run.checkpoints))
        threads = assignment.threads
        science = partial(tables_of, where=where, how=how, epochs=epochs, threads=threads)
        ask([Asked(run.inquiry(assignment, where, how), science)], attempts=attempts)


def key_of_job(models: str, given: dict) -> str:
    """The key of the job's state, from `palimpsest.requests.Unfinished`.

    Raises `UserError` if the run is not trained.
    """
    run = FineTuned(given["dataset"], given["weights"])
    where = Where.of(given["layers"], given["places"], given["positions"])
    how = How(given["bins"], given["neighbours"], given["pairs"])
    return run.inquiry(Assignment.of_unfinished(models, given), where, how).state().key


def tables_of(
    bench: Bench,
    weights: TrainedWeights,
    places: np.ndarray,
    where: Where,
    how: How,
    epochs: list[int],
    threads: int,
) -> list[pd.DataFrame]:
    """The table `layers` of the models in some places, one place for every epoch."""
    rows = np.flatnonzero(bench.material.test_counts > 0)
    keys = {**bench.keys, "variant": bench.material.keys["variant"]}
    found = []
    for place in places:
        models = bench.holder.open([weights.of_run(place)])
        for (site, position), values in activations_of(bench, models, rows, where).items():
            about = {**site._asdict(), "position": position}
            of_site = means_of(values, about, how, threads)
            found.append(of_site.assign(**keys, epoch=epochs[place]))
    return [pd.concat(found, ignore_index=True)[LAYERS.names]]


def means_of(
    values: np.ndarray, about: dict[str, int | str], how: How, threads: int | None = None
) -> pd.DataFrame:
    """One row: the means of both measures over the float[strings, neurons] of a site.

    `about` names the site: its layer, place and position.
    """
    neurons = neurons_of(values, how.bins).assign(**about)
    pairs = pairs_of(values, how.neighbours, how.pairs, threads).assign(**about)
    return means(neurons, pairs)
