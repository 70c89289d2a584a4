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
from palimpsest.information.kinds import LAYERS, MEASURED
from palimpsest.information.kraskov import mutual_information_of_pairs
from palimpsest.information.measured import chosen_pairs, neurons_of
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
        science = partial(tables_of, where=where, how=how, epochs=epochs)
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
) -> list[pd.DataFrame]:
    """The table `layers` of the models in some places, one place for every epoch."""
    rows = np.flatnonzero(bench.material.test_counts > 0)
    keys = {**bench.keys, "variant": bench.material.keys["variant"]}
    found = []
    for place in places:
        models = bench.holder.open([weights.of_run(place)])
        for (site, position), values in activations_of(bench, models, rows, where).items():
            about = {**keys, "epoch": epochs[place], **site._asdict(), "position": position}
            found.append({**about, **means_of(values, how)})
    return [pd.DataFrame(found)[LAYERS.names]]


def means_of(values: np.ndarray, how: How) -> dict[str, float]:
    """Means of both measures over the neurons and pairs of a site's float[strings, neurons]."""
    neurons = neurons_of(values, how.bins)
    # Without those of exchanged strings, which `pairs_of` estimates as well
    pairs = chosen_pairs(values, how.pairs)
    estimates = mutual_information_of_pairs(values, pairs, how.neighbours)
    usable = neurons[~neurons["is_degenerate"]]
    found = (
        len(neurons),
        int(neurons["is_degenerate"].sum()),
        usable["entropy"].mean(),
        len(pairs.first),
        estimates.mean() if len(estimates) else np.nan,
    )
    return dict(zip([column.name for column in MEASURED], found, strict=True))
