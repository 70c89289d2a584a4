"""Train models on datasets and leave their traces.

One process trains on all the given datasets, so that small models share one start-up: all at once
with the engine fleet, one after another with the engine deepspeed. Each run of a full model has a
process of its own, because DeepSpeed keeps memory of a model that is done with. A trace in a folder
leave-one-out is of many runs, each trained without one of the dataset's strings; with --replicates
it is of one run for each of these numbers. A killed run resumes from its last checkpoint when the
same command is given again. A job waits for GPUs of its own, and for another job on the same runs
to end. One that runs out of memory tries again with fewer strings per forward pass.
"""

import argparse
import logging
import os
import sys
from dataclasses import fields
from pathlib import Path

from palimpsest import launch
from palimpsest.errors import OutOfMemory, UserError
from palimpsest.jobs import alone, with_gpus
from palimpsest.models.table import TWIN
from palimpsest.training.attempts import Attempts
from palimpsest.training.recipe import Recipe, add_flags
from palimpsest.variants import LEAVE_ONE_OUT

# Tells the processes of a job which dataset to train on, by its place, if it is not all.
ONLY = "PALIMPSEST_ONLY"
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


def parse_arguments() -> argparse.Namespace:
    """The command line: what to train on what, where results go, and one flag per recipe key."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="a name of the table of models, or its twin")
    parser.add_argument("--models", required=True, help="the table of models (TSV)")
    parser.add_argument("--language", required=True, help="the language's grammar file")
    parser.add_argument("--dataset", nargs="+", required=True, help="tables of strings to train on")
    parser.add_argument(
        "--trace", nargs="+", required=True, help="traces to write, one per dataset"
    )
    parser.add_argument("--manifest", nargs="+", required=True, help="manifests, one per dataset")
    parser.add_argument(
        "--weights", nargs="*", default=[], help="weights to write, one per dataset"
    )
    parser.add_argument("--replicates", nargs=2, type=int, help="first and last of many trainings")
    parser.add_argument("--engine", required=True, choices=["deepspeed", "fleet"], help="trainer")
    parser.add_argument("--memory-mb", type=int, default=8000, help="memory that a fleet may use")
    parser.add_argument("--state", required=True, help="folder for checkpoints of unfinished runs")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs to wait for; 0: use the CPU")
    parser.add_argument("--processes", type=int, default=1, help="processes that share one run")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of all processes")
    add_flags(parser)
    arguments = parser.parse_args()
    if arguments.engine == "fleet" and arguments.processes > 1:
        parser.error("--processes: a fleet is one process; give it --threads")
    if 0 < arguments.gpus < arguments.processes:
        raise UserError(
            f"training/processes: a run of {arguments.model} takes {arguments.processes} GPUs, and "
            f"the job has {arguments.gpus}; set it to at most as many as one machine has"
        )
    return arguments


def main() -> None:
    """Train in a child process, again with less at once when memory runs out."""
    arguments = parse_arguments()
    names = ["-".join([*Path(trace).parts[-6:-1], Path(trace).stem]) for trace in arguments.trace]
    state = Path(arguments.state)
    asked = {name: getattr(arguments, name) for name in OF_MEMORY}
    attempts = Attempts(state / "attempts" / f"{names[0]}.json", asked)
    if launch.is_launched():
        train(arguments, attempts)
        return
    os.environ.pop(ONLY, None)  # of another job, under which this one runs
    locks = [state / "locks" / f"{name}.lock" for name in sorted(names)]
    with alone(locks), with_gpus(arguments.gpus):
        sys.exit(supervise(arguments, attempts))


def supervise(arguments: argparse.Namespace, attempts: Attempts) -> int:
    """Train in one child or, of a full model, in one for each dataset; the last one's status."""
    if not arguments.model.endswith(TWIN):
        # The last child trains on the last dataset, and delivers what all have trained.
        for place in range(len(arguments.dataset) - 1):
            status = train_until_it_fits(arguments, attempts, only=place)
            if status != 0:
                return status
    return train_until_it_fits(arguments, attempts)


def train_until_it_fits(
    arguments: argparse.Namespace, attempts: Attempts, only: int | None = None
) -> int:
    """Train in a child until it succeeds, or fails for another reason than memory; its status."""
    while True:
        tried = attempts.passes()
        status = launch.in_child(lambda: train_only(only, arguments, attempts))
        if status < 0:
            raise UserError(
                f"the training was killed by signal {-status} (9 is also how the system ends a "
                "process when main memory runs out); give the same command again"
            )
        if status == 0 or attempts.passes() == tried:
            return status


def train_only(only: int | None, arguments: argparse.Namespace, attempts: Attempts) -> None:
    """Train on the dataset at one place, or on all; a launcher's processes are told so as well."""
    if only is not None:
        os.environ[ONLY] = str(only)
    train(arguments, attempts)


def train(arguments: argparse.Namespace, attempts: Attempts) -> None:
    """Train on every dataset and deliver all results at once; or train on one and deliver none."""
    threads = max(1, arguments.threads // arguments.processes)
    launch.relaunch_with(arguments.processes, threads)
    launch.keep_freed_memory()
    # Imported after the relaunch: it takes seconds, and a launcher's parent needs none of it.
    with launch.importing():
        from palimpsest.training.finetune import Job, finetune

    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    weights = arguments.weights or [None] * len(arguments.dataset)
    files = zip(arguments.dataset, arguments.trace, arguments.manifest, weights, strict=True)
    recipe = Recipe(**{field.name: getattr(arguments, field.name) for field in fields(Recipe)})
    first_and_last = arguments.replicates
    replicates = range(first_and_last[0], first_and_last[1] + 1) if first_and_last else None
    jobs = [
        Job(dataset, trace, manifest, weights, Path(trace).parent.name == LEAVE_ONE_OUT, replicates)
        for dataset, trace, manifest, weights in files
    ]
    finetune(
        model=arguments.model,
        models=arguments.models,
        language=arguments.language,
        recipe=recipe,
        jobs=[jobs[int(os.environ[ONLY])]] if ONLY in os.environ else jobs,
        engine=arguments.engine,
        state=arguments.state,
        threads=threads,
        memory=arguments.memory_mb * 2**20,
        attempts=attempts,
        delivers=ONLY not in os.environ,
    )


if __name__ == "__main__":
    try:
        main()
    except OutOfMemory as error:
        sys.exit(f"warning: {error}")
    except UserError as error:
        sys.exit(f"error: {error}")
