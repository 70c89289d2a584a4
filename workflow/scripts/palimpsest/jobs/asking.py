"""Jobs that ask trained models: part by part, until a table of each kind can be delivered.

What is done with the models is the job's own. All else is here: what names the job's state, taking
up a killed job, running out of memory, delivering.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
import torch

from palimpsest import tables
from palimpsest.jobs.bench import Bench, TrainedWeights, holder_of, keys_of_weights
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.delivery import Files
from palimpsest.jobs.memory import less_next_time
from palimpsest.training.attempts import Attempts, Passes
from palimpsest.training.manifest import DIGITS, provenance
from palimpsest.training.progress import show_progress
from palimpsest.training.state import StateFolder, key

# From a bench, the weights, and the numbers of some models: a table of each kind about these models
Science = Callable[[Bench, TrainedWeights, np.ndarray], list[pd.DataFrame]]


@dataclass(frozen=True)
class Inquiry:
    """What a job asks, of which trained models.

    `name` says in a word what the job does. `weights` are files of trained models, `dataset` is a
    table of strings. `about` is what else decides the tables, as values that JSON can hold. The job
    asks `n_models` models, numbered from 0, and leaves `files`.
    """

    name: str
    assignment: Assignment
    dataset: str
    weights: list[str]
    about: dict
    n_models: int
    files: Files

    @cached_property
    def decided_by(self) -> dict:
        """All but the dataset that decides the tables.

        Raises `UserError` if a file of weights is not there.
        """
        return {
            "configuration": self.assignment.run(self.dataset).configuration(),
            **self.about,
            "weights": keys_of_weights(self.weights),
            "engine": self.assignment.engine,
        }

    def state(self) -> StateFolder:
        """Where the tables of the models that are done wait for the others."""
        about = {**self.assignment.run(self.dataset).about(), "job": self.name}
        return StateFolder(self.assignment.state, key(self.decided_by, self.dataset), about)


def ask(
    inquiry: Inquiry,
    science: Science,
    make_bench: Callable[..., Bench] = Bench,
    attempts: Attempts | None = None,
    loss_in: Callable[[Bench, list[pd.DataFrame]], float] | None = None,
) -> None:
    """Ask the models of an inquiry, as many at once as the engine holds, and deliver the tables.

    Parameters
    ----------
    inquiry : what is asked of which models
    science : makes the tables about some of the models, one for each of `inquiry.files.tables`
    make_bench : makes what `science` works with, from what `Bench` takes
    attempts : what earlier attempts at this job learned about a device's memory
    loss_in : the loss that is shown as progress, from the tables of some models

    Raises `UserError` if weights are missing or memory is short, and `OutOfMemory` if the next
    attempt should be made.
    """
    assignment, files, state = inquiry.assignment, inquiry.files, inquiry.state()
    torch.set_num_threads(assignment.threads)
    if files.are_of(state.key):
        # A kill may have come between delivering and forgetting.
        state.clear()
        return
    started = time.perf_counter()
    passes = attempts.passes() if attempts else Passes.of(assignment.recipe)
    bench = make_bench(assignment.run(inquiry.dataset), holder_of(assignment), passes)
    if bench.holder.rank == 0:
        assignment.keep_code()
    with less_next_time(
        attempts, assignment.engine, passes, lambda: bench.is_measuring, cuts_batches=False
    ):
        parts = list(_parts(inquiry, science, bench, state, loss_in))
    if bench.holder.rank == 0:
        files.disown()
        for place, (path, kind) in enumerate(files.tables):
            tables.write(path, pd.concat(frames[place] for frames in parts), kind)
        content = {
            **bench.keys,
            "key": state.key,
            **inquiry.decided_by,
            "wall_time_seconds": round(time.perf_counter() - started, DIGITS),
            **provenance(),
        }
        tables.write_json(files.manifest, content)
        state.clear()
        if attempts:
            attempts.forget()
    bench.holder.close()


def _parts(
    inquiry: Inquiry,
    science: Science,
    bench: Bench,
    state: StateFolder,
    loss_in: Callable[[Bench, list[pd.DataFrame]], float] | None,
) -> Iterator[list[pd.DataFrame]]:
    """The tables of one part of the models after another; those already done are in the state.

    Their files are named by their models: a job that goes on may have room for more models at once.
    The first of several processes writes and reads them.
    """
    weights, parts = TrainedWeights(inquiry.weights), bench.parts(inquiry.n_models)
    report = show_progress(f"{inquiry.name} on {bench.run.model}", "part", "loss")
    for number, places in enumerate(parts):
        name = f"{places[0]}-{places[-1]}"
        kept = [
            (state.folder / f"{name}-{kind.name}.parquet", kind) for _, kind in inquiry.files.tables
        ]
        if not all(path.exists() for path, _ in kept):
            frames = science(bench, weights, places)
            if bench.holder.rank == 0:
                state.introduce()
                for (path, kind), frame in zip(kept, frames, strict=True):
                    tables.write(path, frame, kind)
        bench.holder.wait()
        if bench.holder.rank == 0:
            frames = [tables.read(path, kind) for path, kind in kept]
            if loss_in:
                report(number + 1, len(parts), loss_in(bench, frames))
            yield frames
