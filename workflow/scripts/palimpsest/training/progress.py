"""Progress of long work: a bar on a terminal, plain lines in a log, and what a kill leaves."""

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

from palimpsest import tables
from palimpsest.launch import Interrupted

# Environment variable: the file in which a job notes which states it works on
NOTE = "PALIMPSEST_PROGRESS"
CHECKPOINT = re.compile(r"epoch-(\d+)")
# The first and last model of a part, and the kind of the table about them
FINISHED_PART = re.compile(r"(\d+)-(\d+)-.+\.parquet")


def show_progress(
    name: str, unit: str = "epoch", measured: str = "train loss"
) -> Callable[[int, int, float], None]:
    """A progress reporter for one run: a bar on a terminal, or a line every 30 seconds in a log."""
    last = time.monotonic()

    def report(done: int, whole: int, loss: float) -> None:
        nonlocal last
        line = f"{name}: {unit} {done}/{whole}, {measured} {loss:.4f} nats per token"
        if sys.stderr.isatty():
            filled = "#" * (20 * done // whole)
            print(f"\r[{filled:<20}] {line}", end="", file=sys.stderr, flush=True)
            if done == whole:
                print(file=sys.stderr)
        elif done in (1, whole) or time.monotonic() - last > 30:
            print(line, file=sys.stderr, flush=True)
            last = time.monotonic()

    return report


def say_resumed(name: str, unit: str, done: int, whole: int, more: str = "") -> None:
    print(f"{name}: resumed from {unit} {done} of {whole}{more}", file=sys.stderr, flush=True)


def note_work(what: str, unit: str, wholes: Mapping[Path, int], n_tables: int = 1) -> None:
    """Note what this job works on, for the process that says what is kept of an interrupted job.

    `wholes` holds for each folder of state how many epochs, or models, are done in it at the end.
    A finished part of the models has `n_tables` tables.
    """
    if path := os.environ.get(NOTE):
        folders = {str(folder): whole for folder, whole in wholes.items()}
        content = {"what": what, "unit": unit, "n_tables": n_tables, "wholes": folders}
        tables.write_json(path, content)


@contextlib.contextmanager
def telling_what_is_kept(note: Path) -> Iterator[None]:
    """Let an `Interrupted` from this context say what is kept of the work in the file `note`."""
    note.unlink(missing_ok=True)
    os.environ[NOTE] = str(note)
    try:
        yield
    except Interrupted as interrupted:
        interrupted.kept = kept(note)
        raise
    finally:
        note.unlink(missing_ok=True)


def kept(note: Path) -> str:
    """How much of the noted work is kept, such as "30 of 50 epochs of ... are kept"."""
    try:
        content = json.loads(note.read_text())
    except (OSError, ValueError):  # interrupted before anything was begun
        return ""
    wholes = content["wholes"]
    n_tables = content["n_tables"]
    done = sum(_done(Path(folder), whole, n_tables) for folder, whole in wholes.items())
    whole, unit = sum(wholes.values()), content["unit"]
    return f"{done:,} of {whole:,} {unit} of {content['what']} are kept"


def _done(state: Path, whole: int, n_tables: int) -> int:
    """Epochs, or models, that a state keeps; a finished run has a manifest."""
    if (state / "manifest.json").exists():
        return whole
    names = [path.name for path in state.glob("*")]
    epochs = [int(found[1]) for name in names if (found := CHECKPOINT.fullmatch(name))]
    parts = [found.groups() for name in names if (found := FINISHED_PART.fullmatch(name))]
    models = {
        model
        for first, last in parts
        if parts.count((first, last)) == n_tables
        for model in range(int(first), int(last) + 1)
    }
    return max(epochs, default=len(models))
