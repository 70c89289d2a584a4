"""Apply an unlearning method to trained models and leave what the unlearned ones predict.

A killed job goes on with the models that it has not unlearned yet when the same command is given
again. A job waits for GPUs of its own, and for another job on the same models to end.
"""

import argparse
import logging
import sys
from dataclasses import fields
from pathlib import Path

from palimpsest import launch
from palimpsest.errors import UserError
from palimpsest.jobs import alone, with_gpus
from palimpsest.training.recipe import Recipe, add_flags
from palimpsest.unlearning.methods import Method


def parse_arguments() -> argparse.Namespace:
    """The command line: which models forget what, by which method, and where results go."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", required=True, help="a name of the table of models, or its twin")
    parser.add_argument("--models", required=True, help="the table of models (TSV)")
    parser.add_argument("--language", required=True, help="the language's grammar file")
    parser.add_argument("--dataset", required=True, help="table of strings, some to be forgotten")
    parser.add_argument("--method", required=True, help="name of the method")
    parser.add_argument("--phases", required=True, help="the method's phases, as JSON")
    parser.add_argument("--weights", nargs="+", required=True, help="weights of trained models")
    parser.add_argument("--variant", required=True, help="variant of the models to start from")
    parser.add_argument("--starts", nargs="+", type=int, required=True, help="their replicates")
    parser.add_argument(
        "--origins", nargs="+", type=int, required=True, help="replicates of the originals"
    )
    parser.add_argument("--draws", nargs="+", type=int, required=True, help="which unlearning each")
    parser.add_argument("--relearn-models", type=int, required=True, help="how many to relearn")
    parser.add_argument("--relearn-epochs", type=int, required=True, help="for how long at most")
    parser.add_argument("--predictions", required=True, help="table of kind unlearned to write")
    parser.add_argument("--unlearned-models", required=True, help="its models, a table to write")
    parser.add_argument("--manifest", required=True, help="manifest to write")
    parser.add_argument("--engine", required=True, choices=["deepspeed", "fleet"], help="trainer")
    parser.add_argument("--memory-mb", type=int, default=8000, help="memory that a fleet may use")
    parser.add_argument("--state", required=True, help="folder for what is not finished")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs to wait for; 0: use the CPU")
    parser.add_argument("--processes", type=int, default=1, help="processes that share one model")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads of all processes")
    add_flags(parser)
    arguments = parser.parse_args()
    if arguments.engine == "fleet" and arguments.processes > 1:
        parser.error("--processes: a fleet is one process; give it --threads")
    return arguments


def main() -> None:
    """Unlearn in a child process, which dies with this one."""
    arguments = parse_arguments()
    if launch.is_launched():
        work(arguments)
        return
    name = "-".join(Path(arguments.manifest).parts[-6:-1])
    with alone([Path(arguments.state) / "locks" / f"{name}.lock"]), with_gpus(arguments.gpus):
        sys.exit(launch.in_child(lambda: work(arguments)))


def work(arguments: argparse.Namespace) -> None:
    """Unlearn all models of this job."""
    threads = max(1, arguments.threads // arguments.processes)
    launch.relaunch_with(arguments.processes, threads)
    launch.keep_freed_memory()
    # Imported after the relaunch: it takes seconds, and a launcher's parent needs none of it.
    with launch.importing():
        from palimpsest.unlearning.unlearn import Part, Relearning, unlearn

    logging.basicConfig(format="%(levelname)s: %(message)s", level=logging.WARNING)
    unlearn(
        model=arguments.model,
        models=arguments.models,
        language=arguments.language,
        method=Method.from_json(arguments.method, arguments.phases),
        recipe=Recipe(**{field.name: getattr(arguments, field.name) for field in fields(Recipe)}),
        dataset=arguments.dataset,
        weights=arguments.weights,
        part=Part(
            origins=arguments.origins,
            draws=arguments.draws,
            variant=arguments.variant,
            starts=arguments.starts,
            predictions=arguments.predictions,
            models=arguments.unlearned_models,
            manifest=arguments.manifest,
        ),
        relearning=Relearning(arguments.relearn_models, arguments.relearn_epochs),
        engine=arguments.engine,
        state=arguments.state,
        threads=threads,
        memory=arguments.memory_mb * 2**20,
    )


if __name__ == "__main__":
    try:
        main()
    except UserError as error:
        sys.exit(f"error: {error}")
