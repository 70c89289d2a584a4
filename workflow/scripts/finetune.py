"""Train models on datasets and leave their traces.

One process trains on all the given datasets, so that small models share one start-up: all at once
with the engine fleet, one after another with the engine deepspeed. Each run of a full model has a
process of its own, because DeepSpeed keeps memory of a model that is done with. A trace in a folder
leave-one-out is of many runs, each trained without one of the dataset's strings; with --draws it is
of one run for each of these numbers. A killed run
resumes from its last checkpoint when the same command is given again. A job waits for GPUs of its
own, and for another job on the same runs to end. One that runs out of memory tries again with fewer
strings per forward pass.
"""

import argparse
import logging
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
    parser.add_argument("--weights", nargs="*", default=[], help="weights to write, likewise")
    parser.add_argument("--draws", nargs=2, type=int, help="first and last of many trainings")
    parser.add_argument("--only", type=int, help="place of the one dataset to train on")
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
        train(arguments, attempts, arguments.only)
        return
    locks = [state / "locks" / f"{name}.lock" for name in sorted(names)]
    with alone(locks), with_gpus(arguments.gpus):
        sys.exit(supervise(arguments, attempts))


def supervise(arguments: argparse.Namespace, attempts: Attempts) -> int:
    """Train in one child or, of a full model, in one for each run; the status of the last one."""
    n_runs = len(arguments.dataset)
    if n_runs > 1 and not arguments.model.endswith(TWIN):
        for run in range(n_runs):
            status = train_until_it_fits(arguments, attempts, only=run)
            if status != 0:
                return status
    return train_until_it_fits(arguments, attempts)


def train_until_it_fits(
    arguments: argparse.Namespace, attempts: Attempts, only: int | None = None
) -> int:
    """Train in a child until it succeeds, or fails for another reason than memory; its status."""
    while True:
        tried = attempts.passes()
        status = launch.in_child(lambda: train(arguments, attempts, only))
        if status < 0:
            raise UserError(
                f"the training was killed by signal {-status} (9 is also how the system ends a "
                "process when main memory runs out); give the same command again"
            )
        if status == 0 or attempts.passes() == tried:
            return status


def train(arguments: argparse.Namespace, attempts: Attempts, only: int | None = None) -> None:
    """Train on every dataset and deliver all results at once; or train on one and deliver none."""
    if only is not None and not launch.is_launched():
        sys.argv += ["--only", str(only)]  # for the processes of a launcher
    threads = max(1, arguments.threads // arguments.processes)
    launch.relaunch_with(arguments.processes, threads)
    launch.keep_freed_memory()
    # Imported after the relaunch: it takes seconds, and a launcher's parent needs none of it.
    from palimpsest.training.finetune import Job, finetune

    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    weights = arguments.weights or [None] * len(arguments.dataset)
    files = zip(arguments.dataset, arguments.trace, arguments.manifest, weights, strict=True)
    recipe = Recipe(**{field.name: getattr(arguments, field.name) for field in fields(Recipe)})
    draws = range(arguments.draws[0], arguments.draws[1] + 1) if arguments.draws else None
    jobs = [
        Job(dataset, trace, manifest, weights, Path(trace).parent.name == LEAVE_ONE_OUT, draws)
        for dataset, trace, manifest, weights in files
    ]
    finetune(
        model=arguments.model,
        models=arguments.models,
        language=arguments.language,
        recipe=recipe,
        jobs=jobs if only is None else [jobs[only]],
        engine=arguments.engine,
        state=arguments.state,
        threads=threads,
        memory=arguments.memory_mb * 2**20,
        attempts=attempts,
        delivers=only is None,
    )


if __name__ == "__main__":
    try:
        main()
    except OutOfMemory as error:
        sys.exit(f"warning: {error}")
    except UserError as error:
        sys.exit(f"error: {error}")
