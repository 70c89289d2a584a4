"""Apply an unlearning method to trained models, and write the unlearned models' predictions.

When the same command is given again, a killed job continues with the models that it has not
unlearned yet. A job waits for free GPUs, and for another job on the same models to end.
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
    """The command line: the models, the dataset, the method and the results."""
    parser = command.parser(__doc__)
    parser.add_argument("--dataset", required=True, help="table of strings, some to be forgotten")
    parser.add_argument("--method", required=True, help="name of the method")
    parser.add_argument("--phases", required=True, help="the method's phases, as JSON")
    parser.add_argument("--weights", nargs="+", required=True, help="weights of trained models")
    parser.add_argument("--variant", required=True, help="variant of the models to start from")
    parser.add_argument("--starts", nargs="+", type=int, required=True, help="start replicates")
    parser.add_argument(
        "--origins", nargs="+", type=int, required=True, help="replicates of the originals"
    )
    parser.add_argument("--draws", nargs="+", type=int, required=True, help="their unlearnings")
    parser.add_argument("--relearn-models", type=int, required=True, help="number to relearn with")
    parser.add_argument("--relearn-epochs", type=int, required=True, help="most epochs to relearn")
    parser.add_argument("--predictions", required=True, help="table of kind unlearned to write")
    parser.add_argument("--unlearned-models", required=True, help="unlearned_models to write")
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
    # Imported after the relaunch, because it takes seconds, and a launcher does not need it.
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
