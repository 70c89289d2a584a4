"""Jobs that query trained models, part by part, and deliver one table of each kind.

A job supplies the function that works with the models. This module does the rest: it computes the
key of the job's state, resumes a killed job, handles a shortage of memory and delivers the tables.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from palimpsest import tables
from palimpsest.jobs.bench import Bench, TrainedWeights, holder_of, keys_of_weights
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.delivery import Files
from palimpsest.jobs.memory import is_out_of_memory, less_next_time
from palimpsest.tables.kinds import Kind
from palimpsest.training.attempts import Attempts, Passes, fewer_models
from palimpsest.training.manifest import DIGITS, provenance
from palimpsest.training.progress import FINISHED_PART, note_work, say_resumed, show_progress
from palimpsest.training.state import StateFolder, key

SECTION = "section"  # in a state's description: the section that the job belongs to
# Arguments: a bench, the weights, the numbers of some models. Result: one table of each kind about
# these models.
MakeTables = Callable[[Bench, TrainedWeights, np.ndarray], list[pd.DataFrame]]
# Reads the loss that is shown as progress from the tables of some models.
LossIn = Callable[[Bench, list[pd.DataFrame]], float]


@dataclass(frozen=True)
class ModelQuery:
    """A job that queries trained models: its inputs and the files that it delivers.

    `name` says in one word what the job does for the section `section`. `weights` are files of
    trained models; `dataset` is a table of strings. `about` holds everything else that decides the
    tables, as JSON values. The job queries `n_models` models, numbered from 0. It delivers `files`.
    """

    name: str
    section: str
    assignment: Assignment
    dataset: str
    weights: list[str]
    about: dict
    n_models: int
    files: Files
    make_tables: MakeTables

    @cached_property
    def decided_by(self) -> dict:
        """Everything that decides the tables, except the dataset.

        Raises `UserError` if a file of weights is missing.
        """
        return {
            "configuration": self.assignment.run(self.dataset).configuration(),
            **self.about,
            "weights": keys_of_weights(self.weights),
            "engine": self.assignment.engine,
        }

    def state(self) -> StateFolder:
        """The folder that keeps the finished tables until all models are done."""
        about = {
            **self.assignment.run(self.dataset).about(),
            SECTION: self.section,
            "job": self.name,
        }
        return StateFolder(self.assignment.state, key(self.decided_by, self.dataset), about)


def run_model_queries(
    queries: Sequence[ModelQuery],
    make_bench: Callable[..., Bench] = Bench,
    attempts: Attempts | None = None,
    loss_in: LossIn | None = None,
) -> None:
    """Run queries on their models, as many at once as the engine holds, and deliver.

    All queries of a job have one assignment and one dataset, so they share a bench. The tables of
    all queries are delivered at the end. Until then, the states hold everything that is finished,
    also the tables of a query that an earlier job has delivered: if this job fails, Snakemake
    deletes all files of the job, and the next attempt takes the tables from the states.

    Parameters
    ----------
    queries : queries that have one assignment and one dataset
    make_bench : makes the bench that each `make_tables` works with, from the arguments of `Bench`
    attempts : what earlier attempts at this job learned about the device's memory
    loss_in : reads the loss that is shown as progress from the tables of some models

    Raises `UserError` if weights are missing, or if memory is too short for any attempt. Raises
    `OutOfMemory` if the next attempt can succeed.
    """
    first = queries[0]
    assignment, dataset = first.assignment, first.dataset
    torch.set_num_threads(assignment.threads)
    states = [one.state() for one in queries]
    delivered, open_ones = [], []
    for one, state in zip(queries, states, strict=True):
        is_done = one.files.are_of(state.key)
        (delivered if is_done else open_ones).append((one, state))
    if open_ones:
        passes = attempts.passes() if attempts else Passes.of(assignment.recipe)
        bench = make_bench(assignment.run(dataset), holder_of(assignment), passes)
        if bench.holder.rank == 0:
            assignment.keep_code()
            for one, state in delivered:
                _keep_delivered(one, state)
            wholes = zip(states, (one.n_models for one in queries), strict=True)
            note_work(
                f"{bench.run.model} on {dataset}",
                "models",
                {state.folder: n_models for state, n_models in wholes},
                len(first.files.tables),
            )
        with less_next_time(
            attempts, assignment.engine, passes, lambda: bench.is_measuring, cuts_batches=False
        ):
            found = [_answer(one, bench, state, loss_in) for one, state in open_ones]
        if bench.holder.rank == 0:
            for (one, state), (parts, seconds) in zip(open_ones, found, strict=True):
                _deliver(one, bench, state, parts, seconds)
            if attempts:
                attempts.forget()
        bench.holder.wait()
        if bench.holder.rank == 0:
            _clear(states)
        bench.holder.close()
    else:
        # An earlier attempt may have been killed after delivering, before clearing the states.
        _clear(states)


def _clear(states: Sequence[StateFolder]) -> None:
    for state in states:
        state.clear()


def _keep_delivered(query: ModelQuery, state: StateFolder) -> None:
    """Keep the delivered tables of a query in its state, as one finished part."""
    if not query.n_models:
        return
    state.introduce()
    for path, kind in query.files.tables:
        kept = _part_file(state, 0, query.n_models - 1, kind)
        if not kept.exists():
            shutil.copyfile(path, kept)


def _answer(
    one: ModelQuery,
    bench: Bench,
    state: StateFolder,
    loss_in: LossIn | None,
) -> tuple[list[list[pd.DataFrame]], float]:
    started = time.perf_counter()
    parts = list(_parts(one, bench, state, loss_in))
    return parts, time.perf_counter() - started


def _deliver(
    query: ModelQuery,
    bench: Bench,
    state: StateFolder,
    parts: list[list[pd.DataFrame]],
    seconds: float,
) -> None:
    """Write the tables of a query, and its manifest last."""
    query.files.disown()
    for place, (path, kind) in enumerate(query.files.tables):
        frames = [frames[place] for frames in parts]
        tables.write(path, pd.concat(frames) if frames else tables.read_all([], kind), kind)
    content = {
        **bench.keys,
        "key": state.key,
        **query.decided_by,
        "wall_time_seconds": round(seconds, DIGITS),
        **provenance(),
        "earlier_code": state.earlier_code(),
    }
    tables.write_json(query.files.manifest, content)


def _parts(
    query: ModelQuery,
    bench: Bench,
    state: StateFolder,
    loss_in: LossIn | None,
) -> Iterator[list[pd.DataFrame]]:
    """Yield the tables of each part of the models, in order; finished parts are in the state.

    A part is a range of models; the numbers of its first and last model are in the names of its
    files. A resumed job may hold another number of models at once, so it cuts only the models that
    no finished part has. If several processes share the work, only the first one writes and reads
    these files.
    """
    kinds = [kind for _, kind in query.files.tables]
    if not query.n_models:
        return
    finished = _finished(state, kinds, query.n_models)
    # No process may write a part before all processes have listed the finished ones.
    bench.holder.wait()
    weights, waiting = TrainedWeights(query.weights), [*finished]
    missing = np.setdiff1d(np.arange(query.n_models), np.concatenate([[], *finished]))
    for gap in np.split(missing, np.flatnonzero(np.diff(missing) > 1) + 1):
        waiting += bench.parts(gap) if len(gap) else []
    waiting.sort(key=lambda places: places[0])
    name = f"{query.name} on {bench.run.model}"
    report = show_progress(name, "models", "loss")
    if finished and bench.holder.rank == 0:
        say_resumed(name, "model", sum(map(len, finished)), query.n_models)
    while waiting:
        places = waiting.pop(0)
        kept = [(_part_file(state, places[0], places[-1], kind), kind) for kind in kinds]
        if not all(path.exists() for path, _ in kept):
            try:
                frames = query.make_tables(bench, weights, places)
            except RuntimeError as error:
                if query.assignment.engine != "fleet" or not is_out_of_memory(error):
                    raise
                # The estimate was too low, or another program took memory. No table about a model
                # depends on the other models that are held.
                fewer_models(len(places), bench.run.model)
                waiting = [*np.array_split(places, 2), *waiting]
                bench.is_measuring = False
                continue
            if bench.holder.rank == 0:
                state.introduce()
                for (path, kind), frame in zip(kept, frames, strict=True):
                    tables.write(path, frame, kind)
        bench.holder.wait()
        if bench.holder.rank == 0:
            frames = [tables.read(path, kind) for path, kind in kept]
            if loss_in:
                report(int(places[-1]) + 1, query.n_models, loss_in(bench, frames))
            yield frames


def _part_file(state: StateFolder, first: int, last: int, kind: Kind) -> Path:
    return state.folder / f"{first}-{last}-{kind.name}.parquet"


def _finished(state: StateFolder, kinds: list[Kind], n_models: int) -> list[np.ndarray]:
    """The numbers of the models of each finished part; a part has a table of every kind."""
    found, covered = [], 0
    parts = (FINISHED_PART.fullmatch(path.name) for path in state.folder.glob("*.parquet"))
    for first, last in sorted({(int(part[1]), int(part[2])) for part in parts if part}):
        is_whole = all(_part_file(state, first, last, kind).exists() for kind in kinds)
        if is_whole and covered <= first <= last < n_models:
            found.append(np.arange(first, last + 1))
            covered = last + 1
    return found
