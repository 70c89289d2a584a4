"""Manifests: the record of how a run was made, in the folder of its trace."""

import importlib.metadata
import os
import platform
import resource
import subprocess
from functools import cache
from pathlib import Path

import torch

from palimpsest import devices
from palimpsest.fingerprint import of_all_code

# Seconds and tokens per second in a manifest are rounded to this number of digits.
DIGITS = 3
PACKAGES = (
    "torch",
    "transformers",
    "accelerate",
    "deepspeed",
    "peft",
    "numba",
    "numpy",
    "pandas",
    "pyarrow",
)


def manifest(
    keys: dict,
    key: str,
    engine: str,
    configuration: dict,
    training_seconds: float,
    training_tokens: int,
    wall_time_seconds: float,
    started: str,
    **more,
) -> dict:
    """The manifest of a run: `keys` names the run, `key` is a hash of all that decides its trace.

    `started` is when this process took up the run, see `palimpsest.manifests.now`. Seconds and
    tokens of training include neither evaluation nor the work of an earlier process that was
    killed.
    """
    return {
        **keys,
        "key": key,
        "engine": engine,
        "configuration": configuration,
        "precision": configuration["precision"],
        "visible_devices": _visible_devices(),
        **more,
        "peak_memory_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
        "peak_gpu_memory_bytes": _peak_gpu_memory(),
        "started": started,
        "wall_time_seconds": round(wall_time_seconds, DIGITS),
        "training_seconds": round(training_seconds, DIGITS),
        "training_tokens_per_second": round(training_tokens / training_seconds, DIGITS),
        **provenance(),
    }


@cache
def provenance() -> dict:
    """Package versions, the code by its git revision and its hash, and the hardware."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "packages": {"python": platform.python_version(), **versions},
        "revision": _git_revision(),
        "code": of_all_code(),
        "hardware": hardware(),
    }


def _peak_gpu_memory() -> int:
    # A process that was told to use no GPU may have none to ask, although the machine has one.
    return torch.cuda.max_memory_allocated() if torch.cuda.is_available() else 0


def _visible_devices() -> str | None:
    """The GPUs of the job, by identifiers that mean the same in every job; None if unknown."""
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return ",".join(devices.visible()) if chosen else chosen


def hardware() -> dict:
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": gpus,
    }


def _git_revision() -> str | None:
    """The commit of the code, with `-dirty` if files have changed since; None without git."""
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(
            describe, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
