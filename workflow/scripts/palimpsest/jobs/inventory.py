"""The state folder: which states belong to jobs of the configuration, and which are stale."""

import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from palimpsest.errors import UserError
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.finetune import Job
from palimpsest.jobs.model_queries import SECTION
from palimpsest.jobs.query import keys_of_job
from palimpsest.regimes import Replicates
from palimpsest.regimes import named as regime_named
from palimpsest.requests import Unfinished
from palimpsest.training.deepspeed_engine import configuration as deepspeed_configuration
from palimpsest.training.fleet.engine import configuration as fleet_configuration
from palimpsest.training.state import CODE, State, description, key

# The precisions that a setting may mean, depending on the machine.
BOTH = ("bfloat16", "float32")
PRECISIONS = {"fp32": ("float32",), "bf16": BOTH, "auto": BOTH}


@dataclass(frozen=True)
class Entry:
    """The state of one run, or of another kind of job.

    `size` is in bytes. `saved` says in words how much of the work is done. `about` describes the
    run or job.
    """

    folder: Path
    size: int
    saved: str
    about: dict


@dataclass(frozen=True)
class Wanted:
    """Runs that the configuration needs on one dataset.

    `regime` is the name of their regime. `left_out` is the largest number of strings that are left
    out, and `replicates` the number of replicates.
    """

    model: str
    dataset: str
    corpus: str
    learning_rate: float
    engine: str
    training: dict
    predict_end: bool
    regime: str
    left_out: int | None = None
    replicates: int = 0


def stale_state(
    state: str,
    models: str,
    wanted: list[dict],
    unfinished: list[dict],
    sections: list[str],
    delete: bool,
) -> list[str]:
    """Lines about the stale states (see `stale`), which are removed if `delete` is true."""
    runs = [Wanted(**values) for values in wanted]
    jobs = [Unfinished(**values) for values in unfinished]
    entries = stale(state, models, runs, jobs, sections)
    lines = list(listing(entries))
    if delete:
        remove(entries)
    return lines


def stale(
    state: str | Path,
    models: str,
    wanted: list[Wanted],
    unfinished: Iterable[Unfinished] = (),
    sections: Iterable[str] = (),
) -> list[Entry]:
    """The states in a folder that belong to none of the wanted runs and jobs, sorted by name.

    `unfinished` holds all jobs of `sections` that the configuration needs. A state is not listed
    while this cannot be decided: its dataset does not exist now, the models that a job on its
    dataset starts from do not exist, or the state belongs to a job of another section.
    """
    there = [runs for runs in wanted if Path(runs.dataset).exists()]
    unknown = {runs.dataset for runs in wanted if runs not in there}
    of_runs = set().union(*(keys_of(runs, models) for runs in there))
    folders = [path for path in sorted(Path(state).glob("*")) if is_state(path)]
    folders = [folder for folder in folders if folder.name not in of_runs]
    if not folders:
        return []
    of_jobs = set()
    for job in unfinished:
        try:
            of_jobs.update(keys_of_job(models, job.given))
        except UserError:
            unknown.add(job.dataset)
    entries = [entry(folder) for folder in folders if folder.name not in of_jobs]
    known = {None, *sections}
    return [
        found
        for found in entries
        if found.about.get("dataset") not in unknown and found.about.get(SECTION) in known
    ]


def keys_of(wanted: Wanted, models: str) -> set[str]:
    """All keys that the states of some runs can have; the precision depends on the machine."""
    assignment = Assignment.of_unfinished(models, vars(wanted))
    if wanted.replicates:
        regime = Replicates(range(wanted.replicates))
    else:
        regime = regime_named(wanted.regime, wanted.left_out)
    job = Job(wanted.dataset, "", "", regime=regime)
    keys = set()
    for run in job.runs(assignment):
        if wanted.engine == "fleet":
            configurations = [fleet_configuration(run)]
        else:
            processes = wanted.training["processes"]
            precisions = PRECISIONS[assignment.recipe.precision]
            configurations = [deepspeed_configuration(run, processes, p) for p in precisions]
        keys |= {key(configuration, run.dataset) for configuration in configurations}
    return keys


def is_state(path: Path) -> bool:
    """Whether a path is the state of a run or a job; the folder also holds locks and notes."""
    return path.is_dir() and len(path.name) == 20 and set(path.name) <= set("0123456789abcdef")


def entry(folder: Path) -> Entry:
    files = [path for path in folder.rglob("*") if path.is_file()]
    epochs = [int(path.name.removeprefix("epoch-")) for path in folder.glob("epoch-[0-9]*")]
    about = {name: value for name, value in description(folder).items() if name != CODE}
    # A killed job may leave a temporary table, whose name begins with a dot.
    tables = [p for p in files if p.suffix == ".parquet" and not p.name.startswith(".")]
    if State(folder.parent, folder.name).is_finished():
        saved = "finished"
    elif epochs:
        saved = f"saved at epoch {max(epochs)}"
    else:
        saved = f"{len(tables)} tables saved" if tables else "no checkpoint"
    return Entry(folder, sum(path.stat().st_size for path in files), saved, about)


def remove(entries: list[Entry]) -> None:
    for found in entries:
        try:
            shutil.rmtree(found.folder)
        except OSError as error:
            raise UserError(f"{found.folder}: cannot be removed: {error.strerror}") from None


def listing(entries: list[Entry]) -> Iterator[str]:
    for found in entries:
        about = ", ".join(map(str, found.about.values())) or "of an unknown run"
        yield f"{found.folder}  {found.size / 2**20:9,.1f} MiB  {found.saved:20}  {about}"
    total = sum(found.size for found in entries)
    yield f"stale: {len(entries)} states, {total / 2**20:,.1f} MiB"
