"""The working folder: one Snakemake works in it at a time, also after one that was killed.

Snakemake's own lock outlives a Snakemake that was killed; the next one then asks for a flag. The
profiles of this project turn that lock off (`nolock`). The lock used here belongs to the process:
the system releases it when the process ends, however it ends. The profiles also let Snakemake make
unfinished files anew without asking (`rerun-incomplete`).
"""

import atexit
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from palimpsest import locks
from palimpsest.errors import WRITE_REMEDY, UserError

OF_SNAKEMAKE = Path(".snakemake")  # where Snakemake keeps its records
HOLDER = OF_SNAKEMAKE / "palimpsest.json"  # process and host of the Snakemake at work
LOCK = OF_SNAKEMAKE / "palimpsest.lock"
DAMAGED = ".damaged"
RANDOM_NAME = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class WorkingFolder:
    """The current folder, for one Snakemake at a time to work in."""

    def __init__(self):
        self._lock: locks.Lock | None = None

    def take(self) -> None:
        """Keep other Snakemakes out until this process ends; cancel jobs that a killed one left.

        Raises `UserError` if another one is at work, or may be, or nothing can be written.
        """
        _check_writable()
        has_locks = self._lock_it()
        if HOLDER.exists():
            _check_host()
            if not has_locks:
                raise UserError(
                    f"{HOLDER}: {_holder()} has not ended in good order, and this file system "
                    "cannot tell whether it still works; once it is surely gone, delete that file"
                )
            _warn("the last Snakemake in this folder was killed; taking up what it left")
            _cancel_submitted()
        HOLDER.write_text(json.dumps({"process": os.getpid(), "host": socket.gethostname()}))
        atexit.register(HOLDER.absolute().unlink, missing_ok=True)

    def _lock_it(self) -> bool:
        """Lock the folder; False, with a warning, on a file system without locks."""
        try:
            self._lock = locks.try_to_lock(LOCK)
        except locks.NoLocks as error:
            _warn(f"{error}; the file {HOLDER} keeps other Snakemakes out instead")
            return False
        if self._lock is None:
            raise UserError(
                f"another Snakemake works in {Path.cwd()} ({_holder()}); wait for its end, stop "
                "it, or start this one in a folder of its own"
            )
        return True


def _check_writable() -> None:
    """Refuse at once what would fail in every job."""
    for path in (Path.cwd(), Path("results")):
        if path.exists() and not os.access(path, os.W_OK):
            why = "Read-only file system" if os.statvfs(path).f_flag & os.ST_RDONLY else "no right"
            raise UserError(f"{path}: cannot be written: {why}; {WRITE_REMEDY}")


def _check_host() -> None:
    """Refuse to take up what another machine's Snakemake left: its lock may not be seen here."""
    host = _read_holder().get("host", socket.gethostname())
    if host != socket.gethostname():
        raise UserError(
            f"{HOLDER}: a Snakemake on {host} has not ended in good order here, and may be at work "
            "still; give the command there or, once it is surely gone, delete that file"
        )


def put_damaged_aside(paths: Iterable[str]) -> None:
    """Move tables that are there but not whole out of the way, so that they are made anew."""
    for path in paths:
        if not ends_as_parquet(path):
            size = os.path.getsize(path)
            os.replace(path, path + DAMAGED)
            _warn(
                f"{path}: not a complete Parquet file ({size:,} bytes); moved to "
                f"{path}{DAMAGED}, and made anew where it is needed"
            )


def ends_as_parquet(path: str) -> bool:
    """Whether a file ends with the mark that Parquet files are closed with."""
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 4))
        return file.read() == b"PAR1"


def _cancel_submitted() -> None:
    """Cancel what a killed Snakemake has in SLURM's queue from this folder, if there is one.

    Nobody waits for these jobs any more, and their like will be submitted again: trainings resume
    from their checkpoints. The executor names a job by a random identifier.
    """
    queue = ["squeue", "--me", "--noheader", "--format=%i|%j|%Z"]
    try:
        done = subprocess.run(queue, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return
    jobs = [line.split("|", 2) for line in done.stdout.splitlines()]
    here = str(Path.cwd())
    left = [job for job, name, folder in jobs if folder == here and RANDOM_NAME.search(name)]
    if left:
        _warn(f"cancelling the jobs that it had submitted: {', '.join(left)}")
        subprocess.run(["scancel", *left], capture_output=True, timeout=60)


def _holder() -> str:
    holder = _read_holder()
    if not holder:
        return "it has just begun or is about to end"
    return f"process {holder['process']} on {holder['host']}"


def _read_holder() -> dict:
    try:
        return json.loads(HOLDER.read_text())
    except (OSError, ValueError):
        return {}


def _warn(line: str) -> None:
    print(f"warning: {line}", file=sys.stderr)
