"""The timers of Snakemake's scheduler that this project works around are still there.

When the first test here fails, Snakemake has mended the defect. Then delete this file,
`palimpsest/snakemake_3744.py`, and the call in `workflow/rules/start.smk`.
"""

import re
import sys
from pathlib import Path

import pytest

from helpers.projects import ROOT, run_in

pytestmark = pytest.mark.workflow

# Twelve jobs end one after another; the others are ready while the next one sleeps.
SNAKEFILE = """
N = 12

rule all:
    input: expand("{i}.txt", i=range(N)), "long.txt", expand("late{i}.txt", i=range(3))

rule quick:
    output: "{i,[0-9]+}.txt"
    priority: 3
    shell: "touch {output}"

rule long:
    output: "long.txt"
    priority: 2
    shell: "sleep 3; touch {output}"

rule late:
    output: "late{i}.txt"
    shell: "touch {output}"
"""
# Run Snakemake in this process, and count what `_schedule_reevalutation` leads to.
COUNTED = """
import sys, threading
started = []
start = threading.Timer.start
threading.Timer.start = lambda timer: (started.append(timer), start(timer))
from snakemake.cli import main
{workaround}
try:
    main(sys.argv[1:])
except SystemExit as end:
    status = end.code
print("status", status, "timers", len(started))
"""
WORKAROUND = f"""
sys.path.insert(0, {str(ROOT / "workflow/scripts")!r})
from palimpsest.snakemake_3744 import wake_the_scheduler_only_when_jobs_wait
wake_the_scheduler_only_when_jobs_wait()
"""


def timers(folder: Path, workaround: str, *arguments: str) -> int:
    """Timers that a workflow of 16 jobs starts; all of its jobs must have run."""
    (folder / "Snakefile").write_text(SNAKEFILE)
    script = COUNTED.format(workaround=workaround)
    done = run_in(folder, [sys.executable, "-c", script, "--cores", "1", *arguments])
    assert (folder / "late2.txt").exists(), done.stdout
    status, n = re.search(r"status (\d) timers (\d+)", done.stdout).groups()
    assert status == "0", done.stdout
    return int(n)


def test_every_finished_job_adds_a_chain_of_timers(tmp_path):
    """Without the workaround: over ten passes a second while the long job sleeps."""
    n = timers(tmp_path, "")
    assert n > 30, f"only {n} timers: Snakemake has mended #3744, see the top of this file"


def test_without_a_reason_no_timer_starts(tmp_path):
    """No job waits for the limit of 100 jobs a second."""
    assert timers(tmp_path, WORKAROUND) == 0


def test_jobs_that_the_limit_holds_back_run_later(tmp_path):
    """With four jobs a second, 16 jobs wait several times, and there is one timer at a time."""
    n = timers(tmp_path, WORKAROUND, "--max-jobs-per-timespan", "4/1s", "--cores", "8")
    assert 2 <= n <= 8
