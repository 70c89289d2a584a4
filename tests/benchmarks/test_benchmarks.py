"""Every benchmark runs, so that none breaks unseen."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from helpers.forks import python, shared

FOLDER = Path(__file__).parent
pytestmark = pytest.mark.slow


def run(program: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run a program of the benchmarks to its end."""
    command = [python(), str(program), *arguments]
    environment = {**os.environ, **shared()}
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=500)


@pytest.mark.parametrize("name", sorted(path.stem for path in FOLDER.glob("bench_*.py")))
def test_a_benchmark_runs(name):
    """At a tiny size, it succeeds and prints rows; their targets are not judged."""
    done = run(FOLDER / f"{name}.py", "--tiny")
    assert done.returncode == 0, done.stderr
    if done.stderr.startswith(f"{name}: skipped: "):
        pytest.skip(done.stderr.strip())
    # Lines that begin with a bracket are the log of a library.
    lines = [line for line in done.stdout.splitlines() if not line.startswith("[")]
    header, *rows = lines
    assert header.split() == ["work", "ours", "peer", "unit", "ratio", "target"]
    assert rows
    assert all(row.endswith(": not judged") for row in rows)


ROW = """
import sys
from rows import at_least, main
sys.exit(main(lambda tiny: [at_least("{name}", 1.0, 1.0, "x", target_ratio={target})]))
"""


def test_a_benchmark_that_fails_stops_no_other(tmp_path):
    """All benchmarks run; the failed ones and those that missed a target are named at the end."""
    for name in ("run.py", "rows.py"):
        shutil.copy(FOLDER / name, tmp_path)
    (tmp_path / "bench_a.py").write_text("raise RuntimeError('broken')\n")
    (tmp_path / "bench_b.py").write_text(ROW.format(name="slow", target=2))
    (tmp_path / "bench_c.py").write_text(ROW.format(name="fast", target=1))
    done = run(tmp_path / "run.py")
    assert done.returncode == 1
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["work", "slow", "fast"]
    assert done.stderr.splitlines()[-2:] == ["bench_a.py: failed", "bench_b.py: missed a target"]
    done = run(tmp_path / "run.py", "bench_c")
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert run(tmp_path / "run.py", "--tiny", "bench_b").returncode == 0
