"""A job's work, done in child processes: alone on its models, and again when memory runs out."""

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path

from palimpsest import launch
from palimpsest.errors import UserError
from palimpsest.jobs.holding import alone, with_gpus
from palimpsest.training.attempts import Attempts

# The settings on which the memory that a device needs depends.
OF_MEMORY = (
    "micro_batch_size",
    "evaluation_batch_size",
    "processes",
    "gpus",
    "zero_stage",
    "offload_optimizer",
    "precision",
)

Work = Callable[[Attempts], None]


def supervise(arguments: argparse.Namespace, names: Sequence[str], works: Sequence[Work]) -> int:
    """Do the works of a job one after another, each in a child; the status of the one that failed.

    Parameters
    ----------
    arguments : the flags of the job's command.
    names : of what the job makes; nobody else makes any of it meanwhile
    works : functions of what earlier attempts at the job learned about memory. One that raises
        `OutOfMemory` is called again, in a new child. A process that a launcher has started, which
        is a part of such a child, does the last work itself.
    """
    state = Path(arguments.state)
    asked = {name: getattr(arguments, name) for name in OF_MEMORY}
    attempts = Attempts(state / "attempts" / f"{names[0]}.json", asked)
    if launch.is_launched():
        works[-1](attempts)
        return 0
    locks = [state / "locks" / f"{name}.lock" for name in sorted(names)]
    with alone(locks), with_gpus(arguments.gpus):
        for work in works:
            status = _until_it_fits(work, attempts)
            if status != 0:
                return status
    return 0


def _until_it_fits(work: Work, attempts: Attempts) -> int:
    """Work in a child until it succeeds, or fails for another reason than memory; its status."""
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
