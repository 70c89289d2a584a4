"""A copy of the project in a folder of its own, and the ways to run Snakemake in it."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import psutil

from helpers.forks import Outcome, snakemake_in_a_fork

ROOT = Path(__file__).parents[2]
TOUR = "config/tour.yaml"
# What the tests lay over the tour, and the methods that it names
LAID_OVER = [ROOT / "tests/workflow" / name for name in ("grid.yaml", "small_methods.yaml")]
CONFIGFILES = (TOUR, "grid.yaml")
PARTS = ("Snakefile", "workflow", "config", "envs", "profiles")
# What lies beside them
WRITTEN = ("README.md", "CHANGELOG.md", "LICENSE", "Makefile", "pyproject.toml")
WRITTEN += ("requirements.txt", "requirements-pretrained.txt")
COMPILED = (".pyc", ".nbi", ".nbc", ".json")  # Python's files, numba's, and known fingerprints


def copy_of_the_project(folder: Path, compiled: bool = True) -> None:
    """Copy the workflow's files into a folder, without any result.

    Compiled files are copied if wanted; compiling again would take half a minute.
    """
    ignored = _being_written if compiled else shutil.ignore_patterns("__pycache__")
    folder.mkdir(parents=True, exist_ok=True)
    for part in PARTS:
        if (ROOT / part).is_dir():
            shutil.copytree(ROOT / part, folder / part, ignore=ignored)
        else:
            shutil.copy(ROOT / part, folder / part)


def _being_written(folder: str, names: list[str]) -> set[str]:
    """Temporary files that another process is writing now."""
    if Path(folder).name != "__pycache__":
        return set()
    return {name for name in names if not name.endswith(COMPILED)}


def copy_what_was_compiled(project: Path, folder: Path) -> None:
    """Copy what Python and numba have compiled in a project, in which no job runs."""
    for path in (project / "workflow/scripts").rglob("__pycache__"):
        there = folder / path.relative_to(project)
        shutil.copytree(path, there, ignore=_being_written, dirs_exist_ok=True)


def with_the_tests_of_the_project(folder: Path) -> None:
    """Copy tests, documentation and examples into a folder that has the rest of the project."""
    for name in ("tests", "docs", "examples", *WRITTEN):
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, folder / name)
        else:
            shutil.copy(ROOT / name, folder / name)


def run_in(folder: Path, command: list[str]) -> subprocess.CompletedProcess:
    """Run a command in a folder, without this process's library; `stdout` has all its output."""
    return subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": ""},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


class Project:
    """A project folder and Snakemake in it."""

    # Where the tests of the workflow share a tour; on a fresh clone, it compiles more than others.
    tour: ClassVar[Path | None] = None

    def __init__(self, folder: Path):
        self.folder = folder

    @classmethod
    def fresh(cls, folder: Path) -> "Project":
        """A copy of the workflow's files, without any result."""
        copy_of_the_project(folder)
        if cls.tour and (cls.tour / "plan.done").exists():
            copy_what_was_compiled(cls.tour, folder)
        for file in LAID_OVER:
            shutil.copy(file, folder)
        return cls(folder)

    def command(self, *arguments: str, cores: int = 2, configfiles: tuple[str, ...] = CONFIGFILES):
        """The command line of Snakemake."""
        command = [sys.executable, "-m", "snakemake", "--cores", str(cores), *arguments]
        return command + (["--configfile", *configfiles] if configfiles else [])

    def snakemake(self, *arguments: str, forked_jobs: bool = True, **options) -> Outcome:
        """Run Snakemake to its end; `stdout` holds all that it printed."""
        _, _, _, *given = self.command(*arguments, **options)
        return snakemake_in_a_fork(self.folder, given, seconds=1800, forked_jobs=forked_jobs)

    def jobs(self, *arguments: str, **options) -> dict[str, int]:
        """How many jobs of each rule a dry run lists."""
        done = self.snakemake("--dry-run", *arguments, **options)
        assert done.returncode == 0, done.stdout
        table = done.stdout.split("Job stats:")[-1].splitlines()
        rows = [line.split() for line in table]
        return {row[0]: int(row[1]) for row in rows if len(row) == 2 and row[1].isdigit()}

    def contents(self) -> dict[str, bytes]:
        """Every file under `results`, to see that nothing was changed."""
        found = (self.folder / "results").rglob("*")
        return {str(f.relative_to(self.folder)): f.read_bytes() for f in found if f.is_file()}

    @contextlib.contextmanager
    def running(self, *arguments: str, **options) -> Iterator[subprocess.Popen]:
        """A Snakemake at work in the background; nothing of it is left afterwards."""
        with open(self.folder / "running.log", "w") as log:
            process = subprocess.Popen(
                self.command(*arguments, **options),
                cwd=self.folder,
                env={**os.environ, "PYTHONPATH": ""},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(300)


def refused(done: Outcome) -> str:
    """The one line of an error, after checking that it is one and that there is no traceback."""
    assert done.returncode == 1, done.stdout
    assert "Traceback" not in done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith("error: ")]
    assert lines, done.stdout
    assert len(set(lines)) == 1, lines
    return lines[0]


def workers(process: subprocess.Popen, script: str) -> list[psutil.Process]:
    """The processes under a Snakemake that run a script."""
    found = []
    for child in psutil.Process(process.pid).children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if any(word.endswith(script) for word in child.cmdline()):
                found.append(child)
    return found


def wait_until(condition: Callable, what: str = "what is waited for", seconds: float = 600):
    """The first true value of a condition."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not seen in {seconds} s"
        time.sleep(0.05)
    return value
