"""How long the paper's full study takes to plan, against planning nothing.

    python tests/benchmarks/bench_dry_run.py

The dry run is made in a fresh copy of the project, so that every job has to be done.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/benchmarks"))

from rows import Row, at_most, report  # noqa: E402

PARTS = ("Snakefile", "workflow", "config", "envs")
LIMIT_SECONDS = 10
ROUNDS = 3


def dry_run(folder: Path, *arguments: str) -> tuple[float, str]:
    """Seconds of a dry run in a folder, and what it printed."""
    command = [sys.executable, "-m", "snakemake", "--dry-run", "--cores", "2", *arguments]
    environment = {**os.environ, "PYTHONPATH": ""}
    begin = time.perf_counter()
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    seconds = time.perf_counter() - begin
    assert done.returncode == 0, done.stdout + done.stderr
    return seconds, done.stdout + done.stderr


def full_study(folder: Path) -> Row:
    """The dry run of config/paper.yaml, beside that of a Snakefile with one empty rule."""
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, folder / "paper" / part)
    (folder / "empty").mkdir()
    (folder / "empty/Snakefile").write_text("rule all:\n    input: []\n")
    ours, peer = [], []
    for _ in range(ROUNDS):
        seconds, printed = dry_run(
            folder / "paper", "--configfile", "config/paper.yaml", "--quiet", "rules"
        )
        ours.append(seconds)
        peer.append(dry_run(folder / "empty")[0])
    n_jobs = int(re.findall(r"^total\s+(\d+)", printed, re.MULTILINE)[-1])
    name = f"plan the paper's study, {n_jobs:,} jobs; peer: no job"
    return at_most(name, sorted(ours)[ROUNDS // 2], sorted(peer)[ROUNDS // 2], "s", LIMIT_SECONDS)


def rows() -> list[Row]:
    """All rows of this benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "paper").mkdir()
        return [full_study(Path(folder))]


if __name__ == "__main__":
    sys.exit(report(rows()))
