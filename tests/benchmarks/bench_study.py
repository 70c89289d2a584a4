"""The default study, from nothing, twice: how long it takes, and whether its results are the same.

Its two halves have a mark each: memorisation, and what models can be made to forget.

Run as a script: `python tests/benchmarks/bench_study.py`. Takes twice as long as the study.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/benchmarks"))

from rows import Row, at_least, at_most, report  # noqa: E402

PARTS = ("Snakefile", "workflow", "config", "envs")
LIMIT_SECONDS, UNLEARNING_SECONDS = 240, 180
MEMORISATION = ("all", "--config", "unlearning=null")
UNLEARNING = ("unlearning",)


def study_from_nothing(folder: Path, asked: tuple[str, ...]) -> float:
    """Run half of the default study in a fresh copy of the project on two cores; seconds."""
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, folder / part)
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--quiet", *asked]
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PYTHONPATH": ""})
    return time.perf_counter() - begin


def results(folder: Path, names: set[str]) -> dict[str, bytes]:
    """Every file with one of the names, by its place."""
    found = (path for path in folder.rglob("*.parquet") if path.name in names)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def half(work: str, asked: tuple[str, ...], limit: float, names: set[str]) -> Iterator[Row]:
    """Wall time of half of the study against its limit, and how many results are equal."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        seconds = [study_from_nothing(Path(folder), asked) for folder in (first, second)]
        one, other = (results(Path(folder) / "results", names) for folder in (first, second))
    equal = sum(other.get(name) == content for name, content in one.items())
    whole = at_least(f"{work}: equal in two runs", equal, len(one), "tables", len(one))
    yield at_most(f"{work}, 2 cores", max(seconds), limit, "s", limit)
    yield replace(whole, reached=equal == len(one) == len(other))


def rows() -> Iterator[Row]:
    """All rows of this benchmark; a table with seconds in it is not among the compared ones."""
    traces, forgotten = {"trace.parquet"}, {"unlearned.parquet", "epsilons.parquet"}
    yield from half("default study, memorisation", MEMORISATION, LIMIT_SECONDS, traces)
    yield from half("default study, unlearning", UNLEARNING, UNLEARNING_SECONDS, forgotten)


if __name__ == "__main__":
    sys.exit(report(rows()))
