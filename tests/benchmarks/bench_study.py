"""The default study, from nothing, twice: how long it takes, and whether its traces are the same.

Run as a script: `python tests/benchmarks/bench_study.py`. Takes twice as long as the study.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/benchmarks"))

from rows import Row, at_least, at_most, report  # noqa: E402

PARTS = ("Snakefile", "workflow", "config", "envs")
LIMIT_SECONDS = 240


def study_from_nothing(folder: Path) -> float:
    """Run the default study in a fresh copy of the project on two cores; seconds."""
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, folder / part)
    command = [sys.executable, "-m", "snakemake", "--cores", "2", "--quiet", "all"]
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PYTHONPATH": ""})
    return time.perf_counter() - begin


def traces(folder: Path) -> dict[str, bytes]:
    """Every trace of a study, by its place."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("trace.parquet")}


def default_study() -> list[Row]:
    """Wall time of the default study against its limit, and the share of equal traces."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        seconds = [study_from_nothing(Path(folder)) for folder in (first, second)]
        one, other = traces(Path(first)), traces(Path(second))
    equal = sum(other.get(name) == content for name, content in one.items())
    whole = at_least("traces equal bit for bit in two runs", equal, len(one), "traces", len(one))
    return [
        at_most("default study, 2 cores", max(seconds), LIMIT_SECONDS, "s", LIMIT_SECONDS),
        replace(whole, reached=equal == len(one) == len(other)),
    ]


def rows() -> list[Row]:
    """All rows of this benchmark."""
    return default_study()


if __name__ == "__main__":
    sys.exit(report(rows()))
