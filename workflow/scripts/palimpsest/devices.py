"""GPUs of this machine: which there are, and leases on them.

A lease is a lock on a file for each device, so a device is given back however its job ends. Jobs
of all workflows on a machine lease from the same files.
"""

import contextlib
import itertools
import os
import subprocess
import sys
import time
import zlib
from pathlib import Path

from palimpsest.errors import UserError
from palimpsest.locks import POLL_SECONDS, Lock, try_to_lock, wait_for

LOCKS = "PALIMPSEST_LOCKS"  # another folder for the locks of a machine's devices
DEFAULT_LOCKS = "/tmp/palimpsest-devices"


def visible() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES would name them.

    Those that the variable leaves of the machine's or, where it is not set, all. By their unique
    identifiers where the driver's tool is there to tell them, because a number means another
    device in another job of a cluster.
    """
    installed = _installed()
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return installed
    names = [name.strip() for name in chosen.split(",")]
    there = itertools.takewhile(lambda name: _is_there(name, installed), names)
    return [_named(name, installed) for name in there]


def _installed() -> list[str]:
    """Unique identifiers of the machine's GPUs, in the driver's order."""
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.split()


def _is_there(name: str, installed: list[str]) -> bool:
    """Whether CUDA finds a device by a name; it looks at none behind the first that it does not."""
    if name.isdigit():
        return not installed or int(name) < len(installed)
    return name.startswith(("GPU-", "MIG-"))


def _named(name: str, installed: list[str]) -> str:
    """The unique identifier of a device that is named by its number, if it can be told."""
    return installed[int(name)] if name.isdigit() and installed else name


def lease(count: int) -> list[Lock]:
    """Wait for so many GPUs, lock them, and let this process and its children see them alone.

    Those that wait stand in a queue, so that a job of many GPUs is not passed by for ever by jobs
    of few. With a count of 0 no GPU is seen. Raises `UserError` if there are too few.
    """
    devices = visible() if count else []
    if len(devices) < count:
        raise UserError(
            f"the job takes {count} GPUs and sees {len(devices)}; set training/processes to at "
            "most as many as there are or, on a cluster, check that its jobs are given GPUs"
        )
    leases: dict[str, Lock] = {}
    if count:
        folder = _shared_folder()
        # Jobs that may use the same devices stand in one queue.
        queue = zlib.crc32(" ".join(sorted(map(_lock_name, devices))).encode())
        place = wait_for(
            folder / f"queue-{queue:08x}.lock", lambda: _say("waiting in the queue for a GPU")
        )
        leases = _leased(devices, count, folder)
        place.release()
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(leases)
    return list(leases.values())


def _shared_folder() -> Path:
    """The folder of the locks, in which every user of the machine may make files."""
    folder = Path(os.environ.get(LOCKS, DEFAULT_LOCKS))
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o1777)
    return folder


def _leased(devices: list[str], count: int, folder: Path) -> dict[str, Lock]:
    """Locks on the first so many devices to become free, by device."""
    leases: dict[str, Lock] = {}
    said = False
    while True:
        for device in devices:
            if device not in leases and len(leases) < count:
                lock = try_to_lock(folder / f"{_lock_name(device)}.lock")
                if lock is not None:
                    leases[device] = lock
        if len(leases) == count:
            return leases
        if not said:
            _say(f"waiting for {count - len(leases)} of {len(devices)} GPUs")
            said = True
        time.sleep(POLL_SECONDS)


def _lock_name(device: str) -> str:
    """The device, behind its cluster's job if it is a number, which means nothing elsewhere."""
    job = os.environ.get("SLURM_JOB_ID")
    return f"job{job}-{device}" if job and device.isdigit() else device


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
