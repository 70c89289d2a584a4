"""The default study through SLURM against the same study without it, on the same machine.

    python tests/benchmarks/bench_slurm.py

Starts the cluster of the tests (tests/workflow/slurm), which needs root and SLURM (`make
test-slurm` installs it). SLURM adds no core, so all that it can do here is cost time: submissions,
Snakemake started twice for every job, and the wait until Snakemake asks how its jobs are.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/benchmarks"), str(ROOT / "tests/workflow/slurm")]

import cluster  # noqa: E402
from rows import Row, at_most, report  # noqa: E402

PARTS = ("Snakefile", "workflow", "config", "envs")
HOW = {"locally": ["--cores", "2"], "slurm": ["--workflow-profile", "config/profiles/slurm"]}


def study_from_nothing(folder: Path, how: str) -> float:
    """Run the default study in a fresh copy of the project; seconds."""
    for part in PARTS:
        copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
        copy(ROOT / part, folder / part)
    command = [sys.executable, "-m", "snakemake", *HOW[how], "--quiet", "all"]
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PYTHONPATH": ""})
    return time.perf_counter() - begin


def submissions(folder: Path) -> int:
    """How many jobs SLURM was given for a study, by the logs that they left."""
    return len(list((folder / "logs/slurm").rglob("*.log")))


def default_study() -> Row:
    """Wall time of the default study through SLURM, beside that without."""
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
        locally = study_from_nothing(Path(here), "locally")
        through_slurm = study_from_nothing(Path(there), "slurm")
        name = f"default study through SLURM, {submissions(Path(there))} submissions"
    return at_most(name, through_slurm, locally, "s", round(1.5 * locally + 60))


def rows() -> list[Row]:
    """All rows of this benchmark; none where no cluster can be started."""
    try:
        with cluster.lent():
            return [default_study()]
    except cluster.UnusableError as reason:
        print(f"bench_slurm: skipped: {reason}", file=sys.stderr)
        return []


if __name__ == "__main__":
    sys.exit(report(rows()))
