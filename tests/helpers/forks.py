"""Fast starts of Snakemake and of its jobs: each is a fork of a process that has imported before.

Imports take most of Snakemake's start, and most of a small job. As a script, this file is a server
on a socket. For each request with a folder, arguments and an environment, it forks a process and
answers with its exit status. It ends with the process that started it. There are two kinds of
servers: one has imported what Snakemake needs, the other what jobs need. Neither has imported the
library, because each project has its own copy of it.
"""

import atexit
import gc
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NoReturn

SHARED = "PALIMPSEST_SERVER_"  # environment: the socket of a server to use, by its kind
AT_ONCE = 2
SECONDS = 600
PAUSE = 0.02  # seconds between two looks whether a process has ended
PYTHON = Path(__file__).with_name("python_of_forks.py")


@dataclass(frozen=True)
class Outcome:
    """The result of a run of Snakemake, with the same names as in `subprocess`."""

    returncode: int
    stdout: str


def snakemake_in_forks(runs: list[tuple[Path, list[str]]]) -> list[Outcome]:
    """Run Snakemake in each folder with its arguments, several at the same time."""
    # Threads that start a server at the same time would start several.
    _server("snakemake")
    python()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda run: snakemake_in_a_fork(*run), runs))


def snakemake_in_a_fork(
    folder: Path, arguments: list[str], seconds: int = SECONDS, forked_jobs: bool = True
) -> Outcome:
    """Run Snakemake in a folder with the current environment, to its end or for some seconds.

    The Python scripts of its jobs are run in forks as well, unless `forked_jobs` is false.
    """
    with tempfile.TemporaryFile() as printed, open(os.devnull) as nothing:
        asked = {
            "folder": str(folder),
            "arguments": arguments,
            "environment": {**os.environ, "PYTHONPATH": ""},
            "python": python() if forked_jobs else sys.executable,
            "seconds": seconds,
        }
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(_server("snakemake"))
            files = [nothing.fileno(), printed.fileno(), printed.fileno()]
            socket.send_fds(connection, [b"f"], files)
            connection.sendall(json.dumps(asked).encode() + b"\n")
            status = connection.makefile().read()
        printed.seek(0)
        return Outcome(int(status), printed.read().decode(errors="replace"))


@cache
def python() -> str:
    """A command to use like `python`, which runs scripts as forks of this process's server of jobs.

    What is read when Python or torch starts is that of the server: hash seeds, for example, and
    `sitecustomize`.
    """
    place = Path(_server("job"))
    command = place.with_name("bin") / "python"
    if command.exists():
        return str(command)
    command.parent.mkdir(exist_ok=True)
    text = f"#!{sys.executable} -IS\nSERVER = {str(place)!r}\n{PYTHON.read_text()}"
    command.write_text(text)
    command.chmod(0o755)
    return str(command)


def shared() -> dict[str, str]:
    """The environment of a program that is to use this process's servers."""
    return {SHARED + kind: _server(kind) for kind in SERVERS}


def are_shared() -> bool:
    """Whether another process shares its servers with this one."""
    return all(SHARED + kind in os.environ for kind in SERVERS)


def python_of_scripts() -> str:
    """A Python for scripts, which are forks if another process shares its servers."""
    return python() if are_shared() else sys.executable


def run_snakemake(folder: Path, arguments: list[str]) -> None:
    """Run Snakemake, which must succeed: in forks if another process shares its servers."""
    if are_shared():
        done = snakemake_in_a_fork(folder, arguments)
        assert done.returncode == 0, done.stdout
        return
    command = [sys.executable, "-m", "snakemake", *arguments]
    subprocess.run(command, cwd=folder, check=True, stdout=sys.stderr)


@cache
def _server(kind: str) -> str:
    """The socket of the server of a kind: that of another process, if it shares its servers.

    Otherwise it is this process's own, which is started when it is first needed.
    """
    if SHARED + kind in os.environ:
        return os.environ[SHARED + kind]
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    place = Path(folder.name) / "socket"
    server = subprocess.Popen(
        [sys.executable, __file__, kind, place],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": ""},
    )
    while not place.exists():
        assert server.poll() is None, f"the server of kind {kind} has ended"
        time.sleep(PAUSE)
    return str(place)


# The servers


def import_for_snakemake() -> None:
    """Import what every run of Snakemake needs."""
    import jsonschema  # noqa: F401
    import numpy  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import smart_open  # noqa: F401
    import snakemake.cli

    # Plugins are looked for by importing whatever is installed.
    snakemake.cli.get_argument_parser()


def become_snakemake(python: str, seconds: int) -> None:
    """Turn this process into `python -m snakemake`; its jobs run with another `python`."""
    from snakemake.cli import main

    signal.alarm(seconds)
    sys.path[0] = os.getcwd()
    sys.argv.insert(0, "snakemake")
    sys.executable = python
    main()


def import_for_jobs() -> None:
    """Import what takes long in jobs: trainings, tables and figures."""
    import importlib

    for name in (
        "jinja2",
        "jsonschema",
        "matplotlib.backends.backend_svg",
        "matplotlib.figure",
        "numba",
        "pandas",
        "pyarrow.parquet",
        "scipy.optimize",
        "scipy.stats",
        "sklearn",
        "snakemake.script",
        "torch",
        "transformers",
        "transformers.core_model_loading",
        "transformers.modeling_utils",
        "yaml",
    ):
        importlib.import_module(name)


def become_job() -> None:
    """Turn this process into `python SCRIPT ...`."""
    import torch

    # Read from the environment by the import, which was long ago.
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", os.cpu_count())))
    script = sys.argv[0]
    others = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    sys.path[:1] = [os.path.dirname(os.path.abspath(script)), *filter(None, others)]
    runpy.run_path(script, run_name="__main__")


SERVERS: dict[str, tuple[Callable, Callable]] = {
    "snakemake": (import_for_snakemake, become_snakemake),
    "job": (import_for_jobs, become_job),
}


def serve(place: str, become: Callable) -> None:
    """Fork a process for every connection until the standard input is closed.

    Bytes that come later on a connection are signals for the process; its end kills the process.
    """
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"{place}.new")
    listener.listen()
    os.rename(f"{place}.new", place)
    running: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([listener, sys.stdin, *running.values()], [], [], PAUSE)
        if sys.stdin in ready:
            for process in running:
                kill_group(process)
            return
        if listener in ready:
            connection, _ = listener.accept()
            _, files, _, _ = socket.recv_fds(connection, 1, 3)
            line = connection.makefile().readline()
            process = os.fork() if line else None  # nothing is asked by one that was killed
            if process == 0:
                for held in (listener, connection, *running.values()):
                    held.close()
                asked = json.loads(line)
                begin(files, asked.pop("folder"), asked.pop("arguments"), asked.pop("environment"))
                to_the_end(become, **asked)
            for file in files:
                os.close(file)
            if process is None:
                connection.close()
            else:
                running[process] = connection
        for process, connection in running.items():
            if connection in ready:
                sent = connection.recv(1)
                if sent:
                    os.kill(process, sent[0])
                else:
                    kill_group(process)
        while running and (ended := os.waitpid(-1, os.WNOHANG))[0]:
            with running.pop(ended[0]) as connection, suppress(BrokenPipeError):
                connection.sendall(str(os.waitstatus_to_exitcode(ended[1])).encode())


def to_the_end(work: Callable, **asked) -> NoReturn:
    """Do the work and end this process, without taking apart all that was imported."""
    status = 1
    try:
        work(**asked)
        status = 0
    except SystemExit as error:
        status = error.code
        if status is None or isinstance(status, str):
            print(status or "", end="\n" if status else "", file=sys.stderr)
            status = int(bool(status))
    except BaseException:
        traceback.print_exc()
    finally:
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def kill_group(process: int) -> None:
    """Kill a process that was forked, and what it has started."""
    os.kill(process, signal.SIGKILL)
    with suppress(ProcessLookupError):  # it had no time to make the group
        os.killpg(process, signal.SIGKILL)


def begin(files: list[int], folder: str, arguments: list[str], environment: dict[str, str]) -> None:
    """Give this process its folder, arguments, environment and the first three files."""
    os.setsid()
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = arguments
    for place, file in enumerate(files):
        os.dup2(file, place)
        os.close(file)


def main(kind: str, place: str) -> None:
    import_ahead, become = SERVERS[kind]
    import_ahead()
    assert "palimpsest" not in sys.modules
    gc.freeze()  # no fork looks through all that, nor gets a copy of it by doing so
    serve(place, become)


if __name__ == "__main__":
    main(*sys.argv[1:])
