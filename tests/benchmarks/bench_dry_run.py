"""How long the paper's full experiment takes to plan, against planning nothing.

    python tests/benchmarks/bench_dry_run.py

The dry run is made in a fresh copy of the project, so that every job has to be done.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from rows import Row, at_most, main  # noqa: E402

from helpers.projects import copy_of_the_project  # noqa: E402

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


def full_experiment(folder: Path, configfile: str, rounds: int) -> Row:
    """The dry run of a configuration, compared with a Snakefile with one empty rule."""
    copy_of_the_project(folder / "paper")
    (folder / "empty").mkdir()
    (folder / "empty/Snakefile").write_text("rule all:\n    input: []\n")
    ours, peer = [], []
    for _ in range(rounds):
        seconds, printed = dry_run(folder / "paper", "--configfile", configfile, "--quiet", "rules")
        ours.append(seconds)
        peer.append(dry_run(folder / "empty")[0])
    n_jobs = int(re.findall(r"^total\s+(\d+)", printed, re.MULTILINE)[-1])
    name = f"plan the paper's experiment, {n_jobs:,} jobs; peer: no job"
    return at_most(name, sorted(ours)[rounds // 2], sorted(peer)[rounds // 2], "s", LIMIT_SECONDS)


def rows(tiny: bool) -> list[Row]:
    """All rows of this benchmark."""
    size = ("config/config.yaml", 1) if tiny else ("config/paper.yaml", ROUNDS)
    with tempfile.TemporaryDirectory() as folder:
        return [full_experiment(Path(folder), *size)]


if __name__ == "__main__":
    sys.exit(main(rows))
