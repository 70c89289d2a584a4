"""Fine-tuning: train a model on datasets with one of the engines, and deliver the files."""

import hashlib
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from palimpsest import manifests, tables
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.delivery import Files
from palimpsest.jobs.memory import less_next_time
from palimpsest.regimes import (
    SINGLE,
    LeaveOneOut,
    OnePass,
    Regime,
    Removals,
    Replicates,
    of_half,
    without_string,
)
from palimpsest.tables.tokens import TOKENS
from palimpsest.tables.trace import TRACE
from palimpsest.training.attempts import Attempts, Passes
from palimpsest.training.progress import note_work, show_progress
from palimpsest.training.runs import Run, n_cohorts, strings_to_leave_out
from palimpsest.training.state import State, writing
from palimpsest.training.trackers import Trackers


@dataclass(frozen=True)
class Job:
    """A dataset to train on and the files to write.

    `weights`, `tokens` and `checkpoints` are None unless they are wanted; only a single run has the
    last two. `checkpoints` is a folder: the weights after every epoch that is measured.

    Under leave-one-out, the job trains one run per distinct training string, on the dataset without
    that string. The second leave-one-out is the same with other initial weights, after a run on the
    whole dataset. Removals are the same, and also train on random halves. For replicates, the job
    trains one run per number; each run has its own initial weights and its own order of strings.
    The files then hold all these runs in order.
    """

    dataset: str
    trace: str
    manifest: str
    weights: str | None = None
    regime: Regime = SINGLE
    tokens: str | None = None
    checkpoints: str | None = None

    @property
    def files(self) -> Files:
        others = tuple(filter(None, (self.weights, self.checkpoints)))
        tokens = ((self.tokens, TOKENS),) if self.tokens else ()
        return Files(self.manifest, ((self.trace, TRACE), *tokens), others)

    @property
    def holds_many(self) -> bool:
        return not self.regime.has_one_model

    def runs(self, assignment: Assignment) -> list[Run]:
        kept = {"by_token": self.tokens is not None, "by_epoch": self.checkpoints is not None}
        run = replace(assignment.run(self.dataset), **kept)
        match self.regime:
            case Replicates(numbers):
                return [replace(run, replicate=number) for number in numbers]
            case LeaveOneOut(n, again):
                names = strings_to_leave_out(self.dataset, n)
                left_out = [None, *names] if again else names
                return [replace(run, left_out=name, again=again) for name in left_out]
            case Removals(n, halves, again):
                names = map(without_string, strings_to_leave_out(self.dataset, n))
                removals = [*names, *map(of_half, range(halves))]
                return [
                    replace(run, removal=name, again=again)
                    for name in ([None, *removals] if again else removals)
                ]
            case OnePass(every=every, replicate=replicate):
                # An epoch of a stream is one of its macro-batches.
                once = replace(run.recipe, epochs=n_cohorts(self.dataset), evaluate_every=every)
                return [replace(run, recipe=once, replicate=replicate)]
        return [run]


def finetune(
    assignment: Assignment,
    jobs: list[Job],
    attempts: Attempts | None = None,
    delivers: bool = True,
    trackers: tuple[str, ...] = (),
) -> None:
    """Train a model on the dataset of each job and write its trace, its manifest and its weights.

    Snakemake deletes the outputs of a failed job. So nothing is delivered before every run is done:
    a finished run waits in the state folder, and an unfinished run resumes from there. A trace that
    already exists for exactly this configuration and data stays as it is.

    `attempts` holds what earlier attempts at this job learned about the device's memory. If
    `delivers` is false, the finished runs stay in the state folder, and a later call delivers them
    with others. `trackers` are names of trackers. Raises `OutOfMemory` if
    the next attempt can succeed.
    """
    torch.set_num_threads(assignment.threads)
    save_weights = any(job.weights for job in jobs)
    passes = attempts.passes() if attempts else Passes.of(assignment.recipe)
    trainer = ENGINES[assignment.engine](assignment, save_weights, passes, trackers)
    waiting: list[tuple[Job, list[State]]] = []
    runs: list[Run] = []
    for job in jobs:
        of_job = job.runs(assignment)
        states = [trainer.state(run) for run in of_job]
        if not job.files.are_of(key_of(states)):
            waiting.append((job, states))
            runs += of_job
        elif trainer.rank == 0:
            # An earlier attempt may have been killed after delivering, before clearing the state.
            for run_state in states:
                run_state.clear()
    if runs and trainer.rank == 0:
        assignment.keep_code()
        note_trainings(runs, [state for _, states in waiting for state in states])
    with less_next_time(attempts, assignment.engine, passes, lambda: trainer.is_measuring):
        trainer.train(runs, show_progress)
    trainer.close()
    if trainer.rank == 0 and delivers:
        for job, states in waiting:
            deliver(job, states)
        for _, states in waiting:
            for run_state in states:
                run_state.clear()
        if attempts:
            attempts.forget()


def note_trainings(runs: list[Run], states: list[State]) -> None:
    first, *others = runs
    of_one = f"{first.model} on {first.dataset}"
    what = f"{len(runs)} runs of {first.model}" if others else of_one
    wholes = zip(states, runs, strict=True)
    note_work(what, "epochs", {state.folder: run.recipe.epochs for state, run in wholes})


def key_of(states: list[State]) -> str:
    """The key of a job's trace: the key of its only run, or a hash of the keys of its runs."""
    if len(states) == 1:
        return states[0].key
    joined = " ".join(state.key for state in states)
    return hashlib.sha256(joined.encode()).hexdigest()[:20]


def deliver(job: Job, states: list[State]) -> None:
    """Write the files of a job whose runs are finished; the manifest is written last."""
    job.files.disown()
    if job.holds_many:
        _deliver_together(job, states)
        return
    (state,) = states
    pairs = [(state.trace, job.trace), (state.manifest, job.manifest)]
    if job.weights:
        pairs.insert(0, (state.weights, job.weights))
    if job.tokens:
        pairs.insert(0, (state.tokens, job.tokens))
    if job.checkpoints:
        deliver_folder(state.kept, Path(job.checkpoints))
    for source, target in pairs:
        with tables.replacing(target) as temporary:
            shutil.copyfile(source, temporary)


def deliver_folder(source: Path, target: Path) -> None:
    """Copy a folder; a folder of this name is replaced, and is never there in part.

    Files are linked where the file system allows it, because weights are large.
    """
    partial = target.with_name(f"{target.name}.partial")
    for folder in (partial, target):
        shutil.rmtree(folder, ignore_errors=True)
    with writing(partial):
        shutil.copytree(source, partial, copy_function=_link_or_copy)
    partial.rename(target)


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)


def _deliver_together(job: Job, states: list[State]) -> None:
    """Write several runs into one trace and one manifest; weights are named `variant/name`."""
    contents = [manifests.read(state.manifest) for state in states]
    if job.weights:
        weights = {
            f"{content['variant']}/{name}": tensor
            for state, content in zip(states, contents, strict=True)
            for name, tensor in load_file(state.weights).items()
        }
        with tables.replacing(job.weights) as temporary, writing(Path(job.weights)):
            save_file(weights, temporary)
    frames = (tables.read(state.trace, TRACE) for state in states)
    tables.write_parts(job.trace, frames, TRACE)
    variant = job.regime.folder(Path(job.dataset).parent.name)
    tables.write_json(job.manifest, _manifest_of_all(contents, key_of(states), variant))


def _manifest_of_all(contents: list[dict], key: str, variant: str) -> dict:
    """One manifest for several runs: seconds are added up, and `started` is the first one's; other
    values are the last run's.

    If the job was killed and resumed under other code, `earlier_code` names the code of earlier
    runs, too.
    """
    wall, training = (
        sum(content[name] for content in contents)
        for name in ("wall_time_seconds", "training_seconds")
    )
    tokens = sum(c["training_seconds"] * c["training_tokens_per_second"] for c in contents)
    which = ("left_out", "removal", "draw", "again")  # frozen, as in `Run._which`
    last = contents[-1]
    configuration = {k: v for k, v in last["configuration"].items() if k not in which}
    # A state that was finished by an older version of this project has no `earlier_code`.
    versions = (
        code for content in contents for code in (*content.get("earlier_code", []), content["code"])
    )
    return {
        **last,
        "earlier_code": [code for code in dict.fromkeys(versions) if code != last["code"]],
        "variant": variant,
        "key": key,
        "n_runs": len(contents),
        "started": min(content.get("started", "") for content in contents),
        "configuration": configuration,
        "resumed_from_epoch": max(content["resumed_from_epoch"] for content in contents),
        "wall_time_seconds": round(wall, 3),
        "training_seconds": round(training, 3),
        "training_tokens_per_second": round(tokens / training, 3),
    }


def _deepspeed(
    assignment: Assignment, save_weights: bool, passes: Passes, trackers: tuple[str, ...]
):
    followed = _trackers(assignment, trackers)
    from palimpsest.training.deepspeed_engine import DeepSpeedEngine

    given = assignment.recipe, assignment.state, save_weights, passes, followed
    return DeepSpeedEngine(*given, assignment.scale)


def _fleet(assignment: Assignment, save_weights: bool, passes: Passes, trackers: tuple[str, ...]):
    followed = _trackers(assignment, trackers)
    from palimpsest.training.fleet import FleetEngine

    limits = assignment.threads, assignment.memory
    return FleetEngine(assignment.state, *limits, save_weights, followed)


def _trackers(assignment: Assignment, names: tuple[str, ...]) -> Trackers:
    """The trackers of a job; a missing package is an error before any slow import."""
    folder = Path(assignment.state).with_name("trackers") / assignment.recipe_name
    return Trackers(names, folder)


# Imported only when needed: the import of DeepSpeed takes seconds.
ENGINES: dict[str, Callable] = {"deepspeed": _deepspeed, "fleet": _fleet}
