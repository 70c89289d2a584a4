"""The working folder: only one Snakemake works in it at a time; recovery after a kill.

Snakemake's own lock remains after Snakemake was killed, and the next start then needs the flag
`--unlock`. The profiles of this project turn that lock off (`nolock`). The lock in this module
belongs to the process: the system releases the lock when the process ends, for whatever reason.
The profiles also let Snakemake make unfinished files again without a question
(`rerun-incomplete`).
"""

import atexit
import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterable, Set
from pathlib import Path

from palimpsest import locks
from palimpsest.errors import WRITE_REMEDY, UserError

OF_SNAKEMAKE = Path(".snakemake")  # where Snakemake keeps its records
HOLDER = OF_SNAKEMAKE / "palimpsest.json"  # process and host of the running Snakemake
LOCK = OF_SNAKEMAKE / "palimpsest.lock"
DAMAGED = ".damaged"
# Rules that may run while another Snakemake runs: they read nothing that is written in place, and
# their only output is replaced at once. No other rule is known to be harmless: at its end,
# Snakemake deletes empty folders of all files that its graph of jobs names, also those of another
# Snakemake.
HARMLESS = frozenset({"plan"})
RANDOM_NAME = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class WorkingFolder:
    """The current folder; only one Snakemake at a time works in it."""

    def __init__(self):
        self._lock: locks.Lock | None = None
        self._is_taken = False

    def take(self, rules: Set[str] | None = None) -> None:
        """Lock the folder until this process ends; cancel jobs that a killed Snakemake left.

        `rules` are all rules whose jobs this Snakemake plans, if they are known. If all are in
        `HARMLESS`, this Snakemake may work without a lock while another Snakemake works. Raises
        `UserError` if another Snakemake is, or may be, at work in the folder, or if the folder
        cannot be written to.
        """
        if self._is_taken:
            return
        _check_writable()
        if rules is not None and rules <= HARMLESS and not self.is_free():
            return
        has_locks = self._lock_it()
        if HOLDER.exists():
            _check_host()
            if not has_locks:
                raise UserError(
                    f"{HOLDER}: {_holder()} did not end properly, and this file system cannot "
                    "tell whether it still works; once you are sure that it has ended, delete "
                    "that file"
                )
            _warn("the last Snakemake in this folder was killed; continuing its work")
            _cancel_submitted()
        HOLDER.write_text(json.dumps({"process": os.getpid(), "host": socket.gethostname()}))
        atexit.register(HOLDER.absolute().unlink, missing_ok=True)
        self._is_taken = True

    def is_free(self) -> bool:
        """Whether no other Snakemake works in the folder, as far as locks can tell."""
        if self._is_taken or not LOCK.exists():
            return True
        try:
            lock = locks.try_to_lock(LOCK)
        except locks.NoLocks:
            return not HOLDER.exists()
        if lock is not None:
            lock.release()
        return lock is not None

    def _lock_it(self) -> bool:
        """Lock the folder; on a file system without locks, print a warning and return False."""
        try:
            self._lock = locks.try_to_lock(LOCK)
        except locks.NoLocks as error:
            _warn(f"{error}; the file {HOLDER} keeps other Snakemakes out instead")
            return False
        if self._lock is None:
            raise UserError(
                f"another Snakemake works in {Path.cwd()} ({_holder()}); wait for its end, stop "
                f"it, or start this one in a folder of its own; meanwhile --dry-run, --summary, "
                f"--list-target-rules and the target {' and '.join(HARMLESS)} may be used here"
            )
        return True


def _check_writable() -> None:
    """Raise an error now if the folder is not writable; otherwise every job would fail later."""
    for path in (Path.cwd(), Path("results")):
        if path.exists() and not os.access(path, os.W_OK):
            why = "Read-only file system" if os.statvfs(path).f_flag & os.ST_RDONLY else "no right"
            raise UserError(f"{path}: cannot be written: {why}; {WRITE_REMEDY}")


def _check_host() -> None:
    """Raise an error if a Snakemake of another machine worked here: its lock may be invisible."""
    host = _read_holder().get("host", socket.gethostname())
    if host != socket.gethostname():
        raise UserError(
            f"{HOLDER}: a Snakemake on {host} did not end properly here, and may still work; give "
            "the command there or, once you are sure that it has ended, delete that file"
        )


def put_damaged_aside(paths: Iterable[str]) -> None:
    """Rename tables that exist but are incomplete, so that Snakemake makes them again.

    Raises `UserError` if a table cannot be read or moved.
    """
    for path in paths:
        try:
            if ends_as_parquet(path):
                continue
            size = os.path.getsize(path)
            os.replace(path, path + DAMAGED)
        except OSError as error:
            reason = f"cannot be moved: {error.strerror}; {WRITE_REMEDY}"
            raise UserError(f"{error.filename}: {reason}") from None
        _warn(
            f"{path}: not a complete Parquet file ({size:,} bytes); moved to "
            f"{path}{DAMAGED}, and made anew where it is needed"
        )


def ends_as_parquet(path: str) -> bool:
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 4))
        return file.read() == b"PAR1"


def _cancel_submitted() -> None:
    """Cancel the jobs that a killed Snakemake submitted to SLURM from this folder, if any.

    No Snakemake waits for these jobs any more. This Snakemake submits the same work again, and
    trainings resume from their checkpoints. The jobs are recognised by their folder and by their
    name: the executor gives each job a random identifier as its name.
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
