"""The default study, from nothing, twice: how long it takes, and whether its traces are the same.

Run as a script: `python tests/benchmarks/bench_study.py`. Takes twice as long as the study.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("Snakefile", "workflow", "config", "envs")
LIMIT_SECONDS = 480


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


def default_study() -> list[dict]:
    """Wall time of the default study against its limit, and the share of equal traces."""
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        seconds = [study_from_nothing(Path(folder)) for folder in (first, second)]
        one, other = traces(Path(first)), traces(Path(second))
    equal = sum(other.get(name) == content for name, content in one.items())
    return [
        {
            "name": "default study, 2 cores",
            "ours": min(seconds),
            "peer": LIMIT_SECONDS,
            "unit": "s",
            "ratio": LIMIT_SECONDS / min(seconds),
            "target": LIMIT_SECONDS,
            "reached": max(seconds) <= LIMIT_SECONDS,
        },
        {
            "name": "traces equal bit for bit in two runs",
            "ours": equal,
            "peer": len(one),
            "unit": "traces",
            "ratio": equal / len(one),
            "target": len(one),
            "reached": equal == len(one) == len(other),
        },
    ]


def main() -> None:
    """Print what was measured."""
    for row in default_study():
        print(row)


if __name__ == "__main__":
    main()
