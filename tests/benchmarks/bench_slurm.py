"""The default experiment through SLURM against the same study without it, on the same machine.

    python tests/benchmarks/bench_slurm.py

Starts the cluster of the tests (tests/workflow/slurm), which needs root and SLURM (`make
test-slurm` installs it). SLURM adds no core, so all that it can do here is cost time: submissions,
Snakemake started twice for every job, and the wait until Snakemake asks how its jobs are.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/workflow/slurm")]

import cluster  # noqa: E402
from rows import Row, at_most, main  # noqa: E402

from helpers.projects import copy_of_the_project  # noqa: E402

HOW = {"locally": ["--cores", "2"], "slurm": ["--workflow-profile", "config/profiles/slurm"]}


def study_from_nothing(folder: Path, how: str, asked: list[str]) -> float:
    """Run the default experiment in a fresh copy of the project; return the seconds.

    Code that is compiled at first use is copied if it is compiled here, because compiling is not a
    cost of SLURM.
    """
    copy_of_the_project(folder)
    command = [sys.executable, "-m", "snakemake", *HOW[how], *asked, "--quiet", "all"]
    begin = time.perf_counter()
    subprocess.run(command, cwd=folder, check=True, env={**os.environ, "PYTHONPATH": ""})
    return time.perf_counter() - begin


def submissions(folder: Path) -> int:
    """Number of jobs that a study submitted to SLURM, counted by their logs."""
    return len(list((folder / "logs/slurm").rglob("*.log")))


def default_study(asked: list[str]) -> Row:
    """Wall time of the default experiment through SLURM, compared with the time without it."""
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
        locally = study_from_nothing(Path(here), "locally", asked)
        through_slurm = study_from_nothing(Path(there), "slurm", asked)
        name = f"default experiment through SLURM, {submissions(Path(there))} submissions"
    return at_most(name, through_slurm, locally, "s", round(1.5 * locally + 60))


def rows(tiny: bool) -> list[Row]:
    """All rows of this benchmark; none where no cluster can be started."""
    try:
        with cluster.lent():
            return [default_study(["results/languages/L1/summary.json"] if tiny else [])]
    except cluster.UnusableError as reason:
        print(f"bench_slurm: skipped: {reason}", file=sys.stderr)
        return []


if __name__ == "__main__":
    sys.exit(main(rows))
