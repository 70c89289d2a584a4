"""Apply an unlearning method to trained models and leave what the unlearned ones predict.

A killed job goes on with the models that it has not unlearned yet when the same command is given
again. A job waits for GPUs of its own, and for another job on the same models to end.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from palimpsest import launch
from palimpsest.jobs import command
from palimpsest.jobs.supervision import supervise
from palimpsest.training.attempts import Attempts
from palimpsest.unlearning.methods import Method


def parse_arguments() -> argparse.Namespace:
    """The command line: which models forget what, by which method, and where results go."""
    parser = command.parser(__doc__)
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
    return command.parsed(parser)


def main() -> None:
    """Unlearn in a child process, which dies with this one."""
    arguments = parse_arguments()
    name = "-".join(Path(arguments.manifest).parts[-6:-1])
    sys.exit(supervise(arguments, [name], [partial(work, arguments)]))


def work(arguments: argparse.Namespace, attempts: Attempts) -> None:
    """Unlearn all models of this job."""
    command.begin(arguments)
    # Imported after the relaunch: it takes seconds, and a launcher's parent needs none of it.
    with launch.importing():
        from palimpsest.unlearning.unlearn import Part, Relearning, Unlearning, unlearn

    part = Part(
        origins=arguments.origins,
        draws=arguments.draws,
        variant=arguments.variant,
        starts=arguments.starts,
        predictions=arguments.predictions,
        models=arguments.unlearned_models,
        manifest=arguments.manifest,
    )
    method = Method.from_json(arguments.method, arguments.phases)
    relearning = Relearning(arguments.relearn_models, arguments.relearn_epochs)
    unlearn(
        Unlearning(method, part, relearning),
        command.Assignment.of(arguments),
        arguments.dataset,
        arguments.weights,
        attempts,
    )


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
