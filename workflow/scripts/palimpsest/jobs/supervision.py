"""Run a job's work in child processes: alone on its runs, and again if memory runs out."""

import argparse
import contextlib
import hashlib
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path

from palimpsest import devices, launch
from palimpsest.errors import UserError
from palimpsest.locks import NoLocks, wait_for
from palimpsest.training.attempts import Attempts
from palimpsest.training.progress import telling_what_is_kept

# The settings that decide how much memory a device needs.
OF_MEMORY = (
    "micro_batch_size",
    "evaluation_batch_size",
    "processes",
    "gpus",
    "zero_stage",
    "offload_optimizer",
    "precision",
)

# Environment variable: the index of the work that a process of a launcher does
WORK = "PALIMPSEST_WORK"

Work = Callable[[Attempts], None]


def supervise(arguments: argparse.Namespace, names: Sequence[str], works: Sequence[Work]) -> int:
    """Do the works of a job in order, each in a child process; the exit status of the job.

    The first work that fails ends the job with its own status. If the job is interrupted, the
    `Interrupted` that is raised says what is kept.

    Parameters
    ----------
    arguments : the flags of the job's command
    names : names of the job's results; each is locked, so that no other job makes the same result
    works : functions that take an `Attempts`: what earlier attempts at the job learned about
        memory. A function that raises `OutOfMemory` is called again in a new child process. Such a
        child may become a launcher; a process of a launcher calls the same function itself.
    """
    state = Path(arguments.state)
    names = sorted(set(names))
    asked = {name: getattr(arguments, name) for name in OF_MEMORY}
    attempts = Attempts(state / "attempts" / f"{name_of_job(names)}.json", asked)
    if launch.is_launched():
        works[int(os.environ[WORK])](attempts)
        return 0
    locks = [state / "locks" / f"{name}.lock" for name in names]
    note = state / "progress" / f"{name_of_job(names)}.json"
    with alone(locks), with_gpus(arguments.gpus), telling_what_is_kept(note):
        for place in range(len(works)):
            status = _until_it_fits(partial(_do, works, place), attempts)
            if status != 0:
                return status
    return 0


def name_of_job(names: Sequence[str]) -> str:
    """The only name of a job's results, or a hash of all their names, which are sorted."""
    if len(names) == 1:
        return names[0]
    return hashlib.sha256(" ".join(names).encode()).hexdigest()[:20]


def _do(works: Sequence[Work], place: int, attempts: Attempts) -> None:
    """Do a work in a child process; the child may become a launcher of copies of this command."""
    os.environ[WORK] = str(place)
    works[place](attempts)


def _until_it_fits(work: Work, attempts: Attempts) -> int:
    """Call `work` in child processes until it succeeds or cannot take less memory; its status."""
    while True:
        tried = attempts.passes()
        status = launch.in_child(lambda: work(attempts))
        if status < 0:
            raise UserError(
                f"the job was killed by signal {-status} (9 is also how the system ends a "
                "process when main memory runs out); give the same command again"
            )
        if status == 0 or attempts.passes() == tried:
            return status


@contextlib.contextmanager
def alone(paths: Iterable[Path]) -> Iterator[None]:
    """Lock the runs of a job: a job of a killed workflow may still work on the same runs."""
    locks = []
    for path in paths:
        text = f"waiting for another job on the same run to end ({path})"
        try:
            locks.append(wait_for(path, lambda text=text: print(text, file=sys.stderr, flush=True)))
        except NoLocks as error:
            remedy = "make sure that no other job works on these models"
            print(f"warning: {error}; {remedy}", file=sys.stderr)
            break  # one file system has all locks
    try:
        yield
    finally:
        for lock in locks:
            lock.release()


@contextlib.contextmanager
def with_gpus(count: int) -> Iterator[None]:
    """Wait for `count` GPUs and hold them; with a count of 0 the job sees no GPU."""
    leases = devices.lease(count)
    try:
        yield
    finally:
        for lease in leases:
            lease.release()
