"""Snakemake's command line, many times over: every run is a fork of a process that has imported it.

Run as a script, it reads a list of folders and arguments from its standard input, as JSON, and
writes the exit status of each; what they print goes into files of a folder, by number.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

AT_ONCE = 2
SECONDS = 120


@dataclass(frozen=True)
class Outcome:
    """How a run of Snakemake ended, with the same names as of a process that was waited for."""

    returncode: int
    stdout: str


def snakemake_in_forks(runs: list[tuple[Path, list[str]]]) -> list[Outcome]:
    """Run Snakemake in each folder with the arguments beside it, some at a time."""
    with tempfile.TemporaryDirectory() as prints:
        done = subprocess.run(
            [sys.executable, __file__, prints],
            input=json.dumps([(str(folder), arguments) for folder, arguments in runs]),
            env={**os.environ, "PYTHONPATH": ""},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return [
            Outcome(status, (Path(prints) / str(place)).read_text(errors="replace"))
            for place, status in enumerate(json.loads(done.stdout))
        ]


def import_ahead() -> None:
    """Import what every run needs, but nothing of the library: each run has its own copy of it."""
    import jsonschema  # noqa: F401
    import numpy  # noqa: F401
    import snakemake.cli

    # Plugins are looked for by importing whatever is installed.
    snakemake.cli.get_argument_parser()
    assert "palimpsest" not in sys.modules


def become_snakemake(folder: str, arguments: list[str], printed: Path) -> None:
    """Turn this process into `python -m snakemake` in a folder, all that it prints in one file."""
    from snakemake.cli import main

    signal.alarm(SECONDS)
    os.chdir(folder)
    sys.path[0] = folder
    sys.argv = ["snakemake", *arguments]
    output = os.open(printed, os.O_WRONLY | os.O_CREAT)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    main()


def run_all(runs: list[tuple[str, list[str]]], prints: Path) -> list[int]:
    """Fork once for every run; the status of each, in order. They print into files by number."""
    status: dict[int, int] = {}
    running: dict[int, int] = {}

    def wait_for_one() -> None:
        process, code = os.wait()
        status[running.pop(process)] = os.waitstatus_to_exitcode(code)

    for place, (folder, arguments) in enumerate(runs):
        if len(running) == AT_ONCE:
            wait_for_one()
        process = os.fork()
        if process == 0:
            become_snakemake(folder, arguments, prints / str(place))
        running[process] = place
    while running:
        wait_for_one()
    return [status[place] for place in range(len(runs))]


if __name__ == "__main__":
    import_ahead()
    print(json.dumps(run_all(json.load(sys.stdin), Path(sys.argv[1]))))
