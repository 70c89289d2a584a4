"""Ctrl-C: one line says what is kept, the same command continues, and nothing is left at work.

A toy workflow has the hooks of `workflow/rules/start.smk`, and jobs like those that train.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from helpers.commands import SCRIPTS
from helpers.projects import run_in, wait_until

HELPERS = Path(__file__).parents[1] / "helpers"
SNAKEFILE = f"""
import sys
sys.path.insert(0, "{SCRIPTS}")
from snakemake.logging import logger
from snakemake.shell import shell
from palimpsest.ends.interruption import Interruption

interruption = Interruption(logger)

onstart:
    interruption.begin(shell, is_local=True)

onerror:
    interruption.end()

rule all:
    input: config["names"]

rule train:
    output: "{{name}}.trained"
    log: "{{name}}.log"
    retries: 2
    shell:
        "PYTHONPATH={SCRIPTS} {sys.executable} {HELPERS}/interrupted_job.py {{wildcards.name}}"
        " > {{log}} 2>&1 || {{{{ tail -n 1 {{log}} >&2; exit 1; }}}}"

rule draw:
    output: "{{name}}.drawn"
    log: "{{name}}.log"
    script: "draw.py"

rule cache:
    output: "{{name}}.slow"
    log: "{{name}}.log"
    shell: "echo $$ > {{wildcards.name}}.working; trap '' TERM; sleep 600"
"""
DRAW = f"""
import sys, time
from pathlib import Path
sys.path.insert(0, "{SCRIPTS}")
from palimpsest.script_job import script_job
with script_job(snakemake):
    Path(snakemake.wildcards.name + ".working").write_text("0")
    time.sleep(600)
"""


def interrupted(folder: Path, names: list[str], send) -> tuple[int, list[str]]:
    """The status of a Snakemake that gets a signal while its jobs work, and the lines it ends with.

    Fails if a process of it is left.
    """
    (folder / "Snakefile").write_text(SNAKEFILE)
    (folder / "draw.py").write_text(DRAW)
    command = [sys.executable, "-m", "snakemake", "--cores", "4", "--keep-going", "--config"]
    with open(folder / "printed", "w") as printed:
        process = subprocess.Popen(
            [*command, f"names={names}"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": ""},
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        stems = [name.partition(".")[0] for name in names]
        wait_until(lambda: all((folder / f"{stem}.working").exists() for stem in stems))
        below = psutil.Process(process.pid).children(recursive=True)
        assert len(below) >= len(names)
        send(process.pid)
        status = process.wait(300)
    alive = psutil.wait_procs(below, timeout=60)[1]
    assert not alive
    text = (folder / "printed").read_text()
    assert "Traceback" not in text
    assert "Error in" not in text
    return status, text[text.index("interrupted; stopping the jobs") :].splitlines()


@pytest.mark.parametrize(
    ("send", "status"),
    [
        (lambda process: os.kill(process, signal.SIGINT), 130),
        (lambda process: os.killpg(process, signal.SIGTERM), 143),
    ],
    ids=["to the main process alone", "to all processes"],
)
def test_an_interruption_says_what_is_kept(tmp_path, send, status):
    """With one training at work, in one line; the same line is the last of its log."""
    line = "interrupted; 2 of 5 epochs of twin on a are kept; the same command continues"
    stopping = "interrupted; stopping the jobs"
    assert interrupted(tmp_path, ["a.trained"], send) == (status, [stopping, line])
    assert (tmp_path / "a.log").read_text().splitlines() == [line]


def test_an_interruption_of_several_jobs(tmp_path):
    """A line for every training; a job that only draws has nothing to keep."""
    names = ["a.trained", "b.trained", "c.drawn"]
    status, printed = interrupted(
        tmp_path, names, lambda process: os.killpg(process, signal.SIGINT)
    )
    assert status == 130
    assert printed[1] == "interrupted; the same command continues"
    assert sorted(printed[2:]) == [f"  2 of 5 epochs of twin on {name} are kept" for name in "ab"]
    assert (tmp_path / "c.log").read_text() == "interrupted; the same command continues\n"
    assert not list(tmp_path.glob("*.drawn"))


def test_an_impatient_user(tmp_path):
    """The second Ctrl-C does not wait for a job that does not end."""

    def twice(process):
        os.killpg(process, signal.SIGINT)
        wait_until(lambda: "stopping" in (tmp_path / "printed").read_text())
        os.killpg(process, signal.SIGINT)

    status, printed = interrupted(tmp_path, ["a.slow"], twice)
    assert (status, printed[1:]) == (130, ["interrupted; the same command continues"])


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_job_by_itself(tmp_path, number, status):
    """The command of a job that is started by hand ends in the same way."""
    process = subprocess.Popen(
        [sys.executable, HELPERS / "interrupted_job.py", "a"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(SCRIPTS)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    wait_until(lambda: (tmp_path / "a.working").exists())
    os.killpg(process.pid, number)
    _, printed = process.communicate(timeout=300)
    assert process.returncode == status
    assert printed == (
        "interrupted; 2 of 5 epochs of twin on a are kept; the same command continues\n"
    )
    assert not list((tmp_path / "state/progress").iterdir())


def test_snakemake_still_waits_for_its_jobs_when_only_it_is_interrupted(tmp_path):
    """Once this fails, see whether `palimpsest.ends.interruption` is still needed."""
    (tmp_path / "Snakefile").write_text(
        'rule job:\n    output: "a"\n    shell: "touch begun; sleep 3; touch {output} ended"\n'
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", "--cores", "1"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": ""},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: (tmp_path / "begun").exists())
    process.send_signal(signal.SIGINT)
    assert process.wait(300) == 1
    assert (tmp_path / "ended").exists()


def test_an_interruption_while_the_rules_are_read(tmp_path):
    """There is nothing to stop yet, and no traceback."""
    preamble = SNAKEFILE.partition("onstart:")[0]
    (tmp_path / "Snakefile").write_text(
        f"{preamble}\nimport os, signal\nos.kill(os.getpid(), signal.SIGINT)\nrule all:\n"
    )
    done = run_in(tmp_path, [sys.executable, "-m", "snakemake", "--cores", "1"])
    assert (done.returncode, "Traceback" in done.stdout) == (130, False)
    assert done.stdout.splitlines()[-1] == "interrupted; the same command continues"
