"""Apply unlearning methods to trained models, and write the unlearned models' predictions.

When the same command is given again, a killed job continues with the models that it has not
unlearned yet, and a finished job with the methods whose phases changed. A job waits for free GPUs,
and for another job on the same models to end.
"""

import argparse
import json
import sys
from functools import partial
from pathlib import Path

from palimpsest import launch
from palimpsest.jobs import command
from palimpsest.jobs.supervision import supervise
from palimpsest.training.attempts import Attempts
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.run.jobs import models_by_method

TABLES = {
    "--predictions": "unlearned",
    "--unlearned-models": "unlearned_models",
    "--stages": "unlearning_stages",
}
FILES = ("predictions", "models", "stages", "manifest")


def parse_arguments() -> argparse.Namespace:
    """The command line: the models, the dataset, the method and the results."""
    parser = command.parser(__doc__)
    parser.add_argument("--dataset", required=True, help="table of strings, some to be forgotten")
    parser.add_argument("--weights", nargs="+", required=True, help="weights of trained models")
    parser.add_argument(
        "--work", type=json.loads, required=True, help="phases by method, and the models, as JSON"
    )
    parser.add_argument(
        "--afterwards",
        type=json.loads,
        required=True,
        help="the cut-off, and what is done with the unlearned models, as JSON",
    )
    # One file for each method, in the order of --work
    for flag, kind in TABLES.items():
        parser.add_argument(flag, nargs="+", required=True, help=f"tables of kind {kind} to write")
    parser.add_argument("--manifests", nargs="+", required=True, help="manifests to write")
    return command.parsed(parser)


def main() -> None:
    """Unlearn in a child process, which dies with this one."""
    arguments = parse_arguments()
    # {recipe}/{model}/{language}/{problem}/unlearned/{method}/{runs}/manifest.json
    *_, recipe, model, language, problem, _, _, runs, _ = Path(arguments.manifests[0]).parts
    name = "-".join([recipe, model, language, problem, "unlearned", runs])
    sys.exit(supervise(arguments, [name], [partial(work, arguments)]))


def work(arguments: argparse.Namespace, attempts: Attempts) -> None:
    """Apply all methods to all models of this job."""
    command.begin(arguments)
    # Imported after the relaunch, because it takes seconds, and a launcher does not need it.
    with launch.importing():
        from palimpsest.unlearning.run.parts import Afterwards, Part
        from palimpsest.unlearning.run.unlearn import Unlearning, unlearn

    files = zip(
        arguments.predictions,
        arguments.unlearned_models,
        arguments.stages,
        arguments.manifests,
        strict=True,
    )
    phases = arguments.work["phases"]
    parts = models_by_method(phases, arguments.work["models"])
    afterwards = Afterwards.of(arguments.afterwards)
    unlearnings = [
        Unlearning(
            Method.from_json(method, json.dumps(phases[method])),
            Part(**parts[method], **dict(zip(FILES, paths, strict=True))),
            afterwards,
        )
        for method, paths in zip(phases, files, strict=True)
    ]
    unlearn(
        unlearnings,
        command.Assignment.of(arguments),
        arguments.dataset,
        arguments.weights,
        attempts,
    )


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
