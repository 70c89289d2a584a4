"""The GPUs of this machine, and leases on them.

A lease is a lock on a file; there is one file for each GPU. So the system releases a GPU when its
job ends, for whatever reason the job ends. All workflows on a machine use the same files.
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
    """The GPUs that this process may use, in the notation of CUDA_VISIBLE_DEVICES.

    If that variable is set, only its GPUs; otherwise all GPUs of the machine. GPUs are named by
    their unique identifiers if `nvidia-smi` is installed, because in another job of a cluster the
    same number may mean another GPU.
    """
    installed = _installed()
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    if chosen is None:
        return installed
    names = [name.strip() for name in chosen.split(",")]
    there = itertools.takewhile(lambda name: _is_there(name, installed), names)
    return [_named(name, installed) for name in there]


def _installed() -> list[str]:
    command = ["nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return done.stdout.split()


def _is_there(name: str, installed: list[str]) -> bool:
    """Whether CUDA finds a GPU by this name; CUDA ignores all names after an unknown one."""
    if name.isdigit():
        return not installed or int(name) < len(installed)
    return name.startswith(("GPU-", "MIG-"))


def _named(name: str, installed: list[str]) -> str:
    return installed[int(name)] if name.isdigit() and installed else name


def lease(count: int) -> list[Lock]:
    """Wait for `count` GPUs and lock them; this process and its children then see only these.

    Waiting jobs form a queue. Without a queue, jobs with few GPUs could overtake a job with many
    GPUs for ever. With a count of 0, the process sees no GPU. Raises `UserError` if the machine has
    fewer than `count` GPUs.
    """
    devices = visible() if count else []
    if len(devices) < count:
        raise UserError(
            f"the job needs {count} GPUs and sees {len(devices)}; set processes in the recipe to "
            "at most the number of GPUs or, on a cluster, check that its jobs are given GPUs"
        )
    leases: dict[str, Lock] = {}
    if count:
        folder = _shared_folder()
        # Jobs that may use the same GPUs wait in the same queue.
        queue = zlib.crc32(" ".join(sorted(map(_lock_name, devices))).encode())
        place = wait_for(
            folder / f"queue-{queue:08x}.lock", lambda: _say("waiting in the queue for a GPU")
        )
        leases = _leased(devices, count, folder)
        place.release()
    _show(list(leases))
    return list(leases.values())


def _show(devices: list[str]) -> None:
    """Let this process and its children see only these GPUs.

    DeepSpeed 0.19 reads the variable as whole numbers, so GPUs are named by their places in the
    list of `nvidia-smi`, which is in the order of the bus. A part of a GPU (MIG) has no such place.
    """
    installed = _installed() if devices else []
    numbers = {name: str(place) for place, name in enumerate(installed)}
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(numbers.get(name, name) for name in devices)


def _shared_folder() -> Path:
    """The folder of the locks; every user of the machine may make files in this folder."""
    folder = Path(os.environ.get(LOCKS, DEFAULT_LOCKS))
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o1777)
    return folder


def _leased(devices: list[str], count: int, folder: Path) -> dict[str, Lock]:
    """Locks on the first `count` devices that become free, by device."""
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
    """The name of a GPU's lock; a GPU's number gets the job's id, as jobs number GPUs differently.

    For example, device 0 of the cluster's job 17 is `job17-0`.
    """
    job = os.environ.get("SLURM_JOB_ID")
    return f"job{job}-{device}" if job and device.isdigit() else device


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
