"""Manifests: what a run was made with, beside its trace."""

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import torch

PACKAGES = ("torch", "transformers", "accelerate", "deepspeed", "numpy", "pandas", "pyarrow")


def provenance() -> dict:
    """Package versions, the code's git revision and the hardware."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    return {
        "packages": {"python": platform.python_version(), **versions},
        "revision": _git_revision(),
        "hardware": hardware(),
    }


def hardware() -> dict:
    """The machine's processor and accelerators."""
    gpus = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    return {
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpus": gpus,
    }


def _git_revision() -> str | None:
    """The commit of the code, with `-dirty` if files were changed since; None without git."""
    describe = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(
            describe, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
