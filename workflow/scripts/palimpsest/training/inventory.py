"""The state folder: what of it is of runs that the configuration asks for, and what is stale."""

import json
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from palimpsest.errors import UserError
from palimpsest.languages import Grammar
from palimpsest.models import Model, read_models, resolve
from palimpsest.training.deepspeed_engine import configuration as deepspeed_configuration
from palimpsest.training.finetune import Job
from palimpsest.training.fleet.engine import configuration as fleet_configuration
from palimpsest.training.recipe import Recipe
from palimpsest.training.state import ABOUT, State, key

# What `auto` may stand for, on one machine or another.
PRECISIONS = {"auto": ("float32", "bfloat16"), "fp32": ("float32",), "bf16": ("bfloat16",)}


@dataclass(frozen=True)
class Entry:
    """The state of one run: its folder, bytes, newest saved epoch (None: none), and whose it is."""

    folder: Path
    size: int
    epoch: int | None
    finished: bool
    about: dict


@dataclass(frozen=True)
class Wanted:
    """Runs that the configuration asks for: on one dataset, or one without each of its strings.

    `replicates` is their number where a dataset has many.
    """

    model: str
    dataset: str
    language: str
    learning_rate: float
    engine: str
    training: dict
    predict_end: bool
    leave_one_out: bool
    replicates: int = 0


def stale(state: str | Path, models: str, wanted: list[Wanted]) -> list[Entry]:
    """The states under a folder that belong to none of the wanted runs, by name.

    That of a run whose dataset is not there now is none of them: nobody can tell yet.
    """
    there = [runs for runs in wanted if Path(runs.dataset).exists()]
    missing = {runs.dataset for runs in wanted if runs not in there}
    table = read_models(models)
    kept = set().union(*(keys_of(runs, table) for runs in there))
    folders = [path for path in sorted(Path(state).glob("*")) if is_state(path)]
    entries = [entry(folder) for folder in folders if folder.name not in kept]
    return [found for found in entries if found.about.get("dataset") not in missing]


def keys_of(wanted: Wanted, models: dict[str, Model]) -> set[str]:
    """The keys that the states of some runs may have, on a machine of one kind or another."""
    row, scale = resolve(wanted.model, models)
    training = dict(wanted.training)
    processes = training.pop("processes")
    recipe = Recipe(wanted.learning_rate, predict_end=wanted.predict_end, **training)
    grammar = Grammar.from_file(wanted.language)
    replicates = range(wanted.replicates) if wanted.replicates else None
    job = Job(wanted.dataset, "", "", leave_one_out=wanted.leave_one_out, replicates=replicates)
    keys = set()
    for run in job.runs(wanted.model, row, scale, grammar, recipe):
        if wanted.engine == "fleet":
            configurations = [fleet_configuration(run)]
        else:
            precisions = PRECISIONS[recipe.precision]
            configurations = [deepspeed_configuration(run, processes, p) for p in precisions]
        keys |= {key(configuration, run.dataset) for configuration in configurations}
    return keys


def is_state(path: Path) -> bool:
    """Whether a path is the state of a run: locks and notes are kept beside them."""
    return path.is_dir() and len(path.name) == 20 and set(path.name) <= set("0123456789abcdef")


def entry(folder: Path) -> Entry:
    """What is known of a state."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    epochs = [int(path.name.removeprefix("epoch-")) for path in folder.glob("epoch-[0-9]*")]
    try:
        about = json.loads((folder / ABOUT).read_text())
    except (OSError, ValueError):
        about = {}
    finished = State(folder.parent, folder.name).is_finished()
    size = sum(path.stat().st_size for path in files)
    return Entry(folder, size, max(epochs, default=None), finished, about)


def remove(entries: list[Entry]) -> None:
    """Delete states for good."""
    for found in entries:
        try:
            shutil.rmtree(found.folder)
        except OSError as error:
            raise UserError(f"{found.folder}: cannot be removed: {error.strerror}") from None


def listing(entries: list[Entry]) -> Iterator[str]:
    """A line for each state, and one for all."""
    for found in entries:
        saved = "no checkpoint" if found.epoch is None else f"saved at epoch {found.epoch}"
        saved = "finished" if found.finished else saved
        about = ", ".join(map(str, found.about.values())) or "of an unknown run"
        yield f"{found.folder}  {found.size / 2**20:9,.1f} MiB  {saved:20}  {about}"
    total = sum(found.size for found in entries)
    yield f"stale: {len(entries)} states, {total / 2**20:,.1f} MiB"
