"""The default experiment from nothing, twice: how long it takes, and whether its results are equal.

Its two halves have a mark each: memorisation, and what models can be made to forget.

Run as a script: `python tests/benchmarks/bench_study.py`. Takes twice as long as the study.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from rows import Row, at_least, at_most, main  # noqa: E402

from helpers.projects import copy_of_the_project  # noqa: E402

LIMIT_SECONDS, UNLEARNING_SECONDS = 240, 180
MEMORISATION = ("all", "--config", "unlearning=null")
UNLEARNING = ("unlearning",)
TINY = ("results/datasets/L2/n16-seed0/base/strings.parquet", "--configfile", "config/tour.yaml")


def study_from_nothing(folder: Path, asked: tuple[str, ...], compiled: bool) -> float:
    """Run half of the default experiment in a fresh copy of the project on two cores; seconds."""
    copy_of_the_project(folder, compiled)
    command = [sys.executable, "-m", "snakemake", "--cores", "2", *asked]
    command += ["--quiet", "rules", "reason"]
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PYTHONPATH": ""})
    return time.perf_counter() - begin


def results(folder: Path, names: set[str]) -> dict[str, bytes]:
    """Every file with one of the names, by its place."""
    found = (path for path in folder.rglob("*.parquet") if path.name in names)
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def half(
    work: str, asked: tuple[str, ...], limit: float, names: set[str], compiled: bool = False
) -> Iterator[Row]:
    """Wall time of half of the study against its limit, and how many results are equal.

    The time for compiling code counts, unless the code is compiled already.
    """
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        seconds = [study_from_nothing(Path(folder), asked, compiled) for folder in (first, second)]
        one, other = (results(Path(folder) / "results", names) for folder in (first, second))
    equal = sum(other.get(name) == content for name, content in one.items())
    whole = at_least(f"{work}: equal in two runs", equal, len(one), "tables", len(one))
    yield at_most(f"{work}, 2 cores", max(seconds), limit, "s", limit)
    yield replace(whole, reached=equal == len(one) == len(other))


def rows(tiny: bool) -> Iterator[Row]:
    """All rows of this benchmark; tables with seconds in them are not compared."""
    if tiny:
        names = {"strings.parquet"}
        yield from half("a dataset of the tour", TINY, LIMIT_SECONDS, names, compiled=True)
        return
    traces, forgotten = {"trace.parquet"}, {"unlearned.parquet", "epsilons.parquet"}
    yield from half("default experiment, memorisation", MEMORISATION, LIMIT_SECONDS, traces)
    yield from half("default experiment, unlearning", UNLEARNING, UNLEARNING_SECONDS, forgotten)


if __name__ == "__main__":
    sys.exit(main(rows))
