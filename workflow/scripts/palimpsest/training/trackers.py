"""Trackers, TensorBoard and Weights & Biases, which show the losses of runs.

They are optional and off by default. They are used through accelerate's own interface. Nothing that
a tracker does affects a trace, and no trace is made again for a tracker.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from palimpsest.errors import UserError

if TYPE_CHECKING:
    from accelerate import Accelerator

NONE = "none"  # on a command line: no tracker
PROJECT = "palimpsest"
# The packages that serve for each tracker; one of them is enough.
PACKAGES = {"tensorboard": ("tensorboardX", "tensorboard"), "wandb": ("wandb",)}
RUN = "{model}/{language}/n{size}-seed{seed}/{variant}"

log = logging.getLogger("palimpsest")


def named(text: str) -> tuple[str, ...]:
    """The trackers in a text such as `tensorboard,wandb`, or `none`."""
    return () if text == NONE else tuple(text.split(","))


class Trackers:
    """The trackers of a job, and the one run that they follow now.

    `names` are names of trackers. Their files are written into `folder`, and Weights & Biases stays
    offline unless the user has set WANDB_MODE. Raises `UserError` if a package is missing.
    """

    def __init__(self, names: Sequence[str] = (), folder: str | Path = ""):
        self.names, self.folder = tuple(names), Path(folder)
        self._accelerator: Accelerator | None = None
        for name in self.names:
            if not any(map(importlib.util.find_spec, PACKAGES[name])):
                raise UserError(
                    f"trackers: {name} needs the package {PACKAGES[name][0]}, which is not "
                    "installed; install it with: pip install -r requirements-trackers.txt"
                )
        if "wandb" in self.names:
            # Read when wandb is imported: nothing may wait for a network, or for a login.
            os.environ.setdefault("WANDB_MODE", "offline")

    @property
    def for_accelerator(self) -> dict:
        return {"log_with": list(self.names), "project_dir": self.folder} if self.names else {}

    def begin(self, accelerator: Accelerator, keys: dict, settings: dict) -> None:
        """Follow a run from now on; `keys` name the run, and `settings` are shown with it."""
        if not self.names:
            return
        run = RUN.format(**keys)
        accelerator.project_configuration.logging_dir = str(self.folder / run)
        accelerator.trackers = []  # without those of the run before
        of_wandb = {"name": run, "group": keys["model"], "dir": str(self.folder)}
        self._accelerator = accelerator

        def start() -> None:
            self.folder.mkdir(parents=True, exist_ok=True)
            # Trackers cannot show numbers of NumPy.
            named = {
                name: getattr(value, "tolist", lambda v=value: v)() for name, value in keys.items()
            }
            accelerator.init_trackers(PROJECT, {**named, **settings}, {"wandb": of_wandb})

        self._unless_it_fails(start)

    def show(self, epoch: int, values: dict[str, float]) -> None:
        self._unless_it_fails(lambda: self._accelerator.log(values, step=epoch))

    def end(self) -> None:
        """The run is finished; `Accelerator.end_training` would also end the group of processes."""
        self._unless_it_fails(lambda: [one.finish() for one in self._accelerator.trackers])
        self._accelerator = None

    def show_finished(
        self, keys: dict, settings: dict, curve: Mapping[int, dict[str, float]]
    ) -> None:
        """Show a run of a fleet when it is finished: the values of all its epochs, by epoch.

        Hundreds of runs take every step together, and a tracker follows one at a time.
        """
        if not self.names:
            return
        from accelerate import Accelerator

        # The runs are trained elsewhere; nothing is moved to a GPU here.
        self.begin(Accelerator(cpu=True, **self.for_accelerator), keys, settings)
        for epoch, values in sorted(curve.items()):
            self.show(epoch, values)
        self.end()

    def _unless_it_fails(self, work: Callable[[], object]) -> None:
        """Do some work of the trackers; if it fails, warn and follow this run no longer.

        A full disk or a server's refusal must not end a training of many hours.
        """
        if self._accelerator is None:
            return
        try:
            work()
        except Exception as error:
            self._accelerator = None
            reason = str(error).strip().partition("\n")[0]
            log.warning("trackers: %s; the training goes on without them", reason)
