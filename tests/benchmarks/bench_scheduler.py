"""How much of a core Snakemake's main process takes from the work, with and without the workaround.

    python tests/benchmarks/bench_scheduler.py

The peer is the same Snakemake without `palimpsest/snakemake_3744.py`. First a workflow of empty
jobs, while one of them sleeps; then the tour and the default experiment from nothing, while
trainings run.
"""

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from rows import Row, at_least, at_most, main  # noqa: E402

from helpers.projects import TOUR, copy_of_the_project, workers  # noqa: E402

PERCENT, FASTER = 3, 1.25
CALL = "wake_the_scheduler_only_when_jobs_wait()"
EMPTY_JOBS = """
import sys
sys.path.insert(0, "{scripts}")
from palimpsest.snakemake_3744 import wake_the_scheduler_only_when_jobs_wait
{call}

rule all:
    input:
        expand("done{{i}}.txt", i=range({done})),
        "slept.txt",
        expand("ready{{i}}.txt", i=range({ready})),

rule done:
    output: "done{{i}}.txt"
    priority: 2
    shell: "touch {{output}}"

rule sleep:
    output: "slept.txt"
    priority: 1
    shell: "touch sleeping; sleep {seconds}; touch {{output}}"

rule ready:
    output: "ready{{i}}.txt"
    shell: "touch {{output}}"
"""


@dataclass(frozen=True)
class Taken:
    """Seconds of a whole command, and what its main process took of a core at some of the time."""

    seconds: float
    percent: float


def taken(folder: Path, command: list[str], counts: Callable[[subprocess.Popen], bool]) -> Taken:
    """Run a command; its main process is measured at the times that count."""
    begin = time.perf_counter()
    with (folder / "printed.log").open("w") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=subprocess.STDOUT)
    main_process = psutil.Process(process.pid)
    used = passed = 0.0
    last = None
    while process.poll() is None:
        if counts(process):
            times = main_process.cpu_times()
            now = time.perf_counter(), times.user + times.system
            if last is not None:
                passed += now[0] - last[0]
                used += now[1] - last[1]
            last = now
        else:
            last = None
        time.sleep(0.5)
    assert process.returncode == 0, (folder / "printed.log").read_text()[-2000:]
    return Taken(time.perf_counter() - begin, 100 * used / passed)


def snakemake(cores: int, *words: str) -> list[str]:
    """The command line of Snakemake."""
    return [sys.executable, "-m", "snakemake", "--cores", str(cores), "--quiet", "all", *words]


def of_empty_jobs(folder: Path, call: str, tiny: bool) -> Taken:
    """A workflow in which many jobs are done and many are ready, while the only core sleeps."""
    folder.mkdir()
    done, ready, seconds = (3, 2, 3) if tiny else (150, 40, 20)
    text = EMPTY_JOBS.format(
        scripts=ROOT / "workflow/scripts", call=call, done=done, ready=ready, seconds=seconds
    )
    (folder / "Snakefile").write_text(text)
    asleep, awake = folder / "sleeping", folder / "slept.txt"
    return taken(folder, snakemake(1), lambda _: asleep.exists() and not awake.exists())


def of_experiment(folder: Path, call: str, words: tuple[str, ...]) -> Taken:
    """An experiment from nothing in a fresh copy of the project."""
    copy_of_the_project(folder, compiled=False)
    start = folder / "workflow/rules/start.smk"
    text = start.read_text()
    assert text.count(f"\n{CALL}\n") == 1
    start.write_text(text.replace(f"\n{CALL}\n", f"\n{call}\n"))
    return taken(folder, snakemake(2, *words), lambda process: workers(process, "finetune.py"))


def share(work: str, ours: Taken, peer: Taken) -> Row:
    """What the main process took of a core; the processor's clock shows no less than 0.1 %."""
    ratio = peer.percent / max(ours.percent, 0.1)
    name = f"main process, {work}; peer: no workaround"
    return at_most(name, ours.percent, peer.percent, "% of core", PERCENT, ratio)


def rows(tiny: bool) -> Iterator[Row]:
    """All rows of this benchmark."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ours, peer = (of_empty_jobs(folder / f"empty{call}", call, tiny) for call in (CALL, ""))
        yield share("150 empty jobs done", ours, peer)
        if tiny:
            return
        for title, words in (("make tour", ("--configfile", TOUR)), ("make run", ())):
            ours, peer = (
                of_experiment(folder / f"{title}{call}", call, words) for call in (CALL, "")
            )
            yield share(f"{title}, trainings", ours, peer)
            faster = peer.seconds / ours.seconds
            what = f"{title}, from nothing; peer: no workaround"
            yield at_least(what, ours.seconds, peer.seconds, "s", target_ratio=FASTER, ratio=faster)


if __name__ == "__main__":
    sys.exit(main(rows))
