"""Locks on a job's runs, and leases on its GPUs, for as long as the job works."""

import contextlib
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from palimpsest import devices
from palimpsest.locks import NoLocks, wait_for


@contextlib.contextmanager
def alone(paths: Iterable[Path]) -> Iterator[None]:
    """Lock the runs of a job: a job of a killed workflow may still work on the same runs."""
    locks = []
    for path in paths:
        text = f"waiting for another job on the same run to end ({path})"
        try:
            locks.append(wait_for(path, lambda text=text: print(text, file=sys.stderr, flush=True)))
        except NoLocks as error:
            print(f"warning: {error}; make sure that no other job trains this run", file=sys.stderr)
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
