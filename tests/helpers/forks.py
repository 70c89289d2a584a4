"""Fast runs of Snakemake: every run is a fork of a process that has already imported Snakemake.

Imports take most of Snakemake's start. As a script, this file is a server on a socket. For each
request with a folder, arguments and an environment, it forks a Snakemake and answers with its exit
status. It ends with the process that started it.
"""

import atexit
import gc
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

AT_ONCE = 2
SECONDS = 120
PAUSE = 0.02  # seconds between two looks whether a Snakemake has ended


@dataclass(frozen=True)
class Outcome:
    """The result of a run of Snakemake, with the same names as in `subprocess`."""

    returncode: int
    stdout: str


def snakemake_in_forks(runs: list[tuple[Path, list[str]]]) -> list[Outcome]:
    """Run Snakemake in each folder with its arguments, several at the same time."""
    _server()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda run: snakemake_in_a_fork(*run), runs))


def snakemake_in_a_fork(folder: Path, arguments: list[str], seconds: int = SECONDS) -> Outcome:
    """Run Snakemake in a folder with the current environment, to its end or for some seconds."""
    with tempfile.NamedTemporaryFile() as printed:
        asked = {
            "folder": str(folder),
            "arguments": arguments,
            "environment": {**os.environ, "PYTHONPATH": ""},
            "printed": printed.name,
            "seconds": seconds,
        }
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(_server())
            connection.sendall(json.dumps(asked).encode() + b"\n")
            status = connection.makefile().read()
        return Outcome(int(status), Path(printed.name).read_text(errors="replace"))


@cache
def _server() -> str:
    """The socket of this process's server, which is started when it is first needed."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    place = Path(folder.name) / "socket"
    server = subprocess.Popen(
        [sys.executable, __file__, place],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ""},
    )
    while not place.exists():
        assert server.poll() is None, "the server of Snakemakes has ended"
        time.sleep(PAUSE)
    return str(place)


# The server


def import_ahead() -> None:
    """Import what every run needs, but nothing of the library: each run has its own copy of it."""
    import jsonschema  # noqa: F401
    import numpy  # noqa: F401
    import snakemake.cli

    # Plugins are looked for by importing whatever is installed.
    snakemake.cli.get_argument_parser()
    assert "palimpsest" not in sys.modules


def become_snakemake(
    folder: str, arguments: list[str], environment: dict[str, str], printed: str, seconds: int
) -> None:
    """Turn this process into `python -m snakemake` in a folder, all that it prints in one file."""
    from snakemake.cli import main

    signal.alarm(seconds)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.path[0] = folder
    sys.argv = ["snakemake", *arguments]
    output = os.open(printed, os.O_WRONLY)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    main()


def serve(place: str) -> None:
    """Fork a Snakemake for every connection until the standard input is closed."""
    import_ahead()
    gc.freeze()  # no fork looks through all that, nor gets a copy of it by doing so
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{place}.new")
    listener.listen()
    os.rename(f"{place}.new", place)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([listener, sys.stdin], [], [], PAUSE)
        if sys.stdin in ready:
            return
        if ready:
            connection, _ = listener.accept()
            asked = json.loads(connection.makefile().readline())
            process = os.fork()
            if process == 0:
                for held in (listener, connection, *running.values()):
                    held.close()
                become_snakemake(**asked)
                return
            running[process] = connection
        while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with running.pop(ended[0]) as connection:
                connection.sendall(str(os.waitstatus_to_exitcode(ended[1])).encode())


if __name__ == "__main__":
    serve(sys.argv[1])
