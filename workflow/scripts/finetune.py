"""Train models on datasets and leave their traces.

One process trains on all the given datasets, so that small models share one start-up: all at once
with the engine fleet, one after another with the engine deepspeed. A trace in a folder
leave-one-out is of many runs, each trained without one of the dataset's strings. A killed run
resumes from its last checkpoint when the same command is given again.
"""

import argparse
import logging
import sys
from dataclasses import fields
from pathlib import Path

from palimpsest.errors import UserError
from palimpsest.launch import keep_freed_memory, relaunch_with
from palimpsest.training.recipe import Recipe


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
    parser.add_argument("--engine", required=True, choices=["deepspeed", "fleet"], help="trainer")
    parser.add_argument("--memory-mb", type=int, default=8000, help="memory that a fleet may use")
    parser.add_argument("--state", required=True, help="folder for checkpoints of unfinished runs")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs that the job may use")
    parser.add_argument("--processes", type=int, default=1, help="processes that share one run")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of each process")
    recipe = parser.add_argument_group("recipe", "the keys of training: in the configuration")
    for field in fields(Recipe):
        flag = "--" + field.name.replace("_", "-")
        kind = _boolean if field.type is bool else field.type
        recipe.add_argument(flag, type=kind, required=True, help=f"{field.name} of the recipe")
    arguments = parser.parse_args()
    if arguments.engine == "fleet" and arguments.processes > 1:
        parser.error("--processes: a fleet is one process; give it --threads")
    return arguments


def _boolean(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def main() -> None:
    """Train every dataset, then deliver all results at once."""
    arguments = parse_arguments()
    relaunch_with(arguments.processes, arguments.threads)
    keep_freed_memory()
    # Imported after the relaunch: it takes seconds, and a launcher's parent needs none of it.
    from palimpsest.training.finetune import LEAVE_ONE_OUT, Job, finetune

    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    weights = arguments.weights or [None] * len(arguments.dataset)
    files = zip(arguments.dataset, arguments.trace, arguments.manifest, weights, strict=True)
    recipe = Recipe(**{field.name: getattr(arguments, field.name) for field in fields(Recipe)})
    finetune(
        model=arguments.model,
        models=arguments.models,
        language=arguments.language,
        recipe=recipe,
        jobs=[
            Job(dataset, trace, manifest, weights, Path(trace).parent.name == LEAVE_ONE_OUT)
            for dataset, trace, manifest, weights in files
        ],
        engine=arguments.engine,
        state=arguments.state,
        threads=arguments.threads,
        memory=arguments.memory_mb * 2**20,
    )


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"error: {error}")
