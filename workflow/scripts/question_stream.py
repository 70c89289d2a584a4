"""Question the trained model of a stream: greedy decoding, and influence functions.

A job waits for free GPUs, and for another job on the same model to end.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from palimpsest import launch
from palimpsest.jobs import command
from palimpsest.jobs.supervision import supervise
from palimpsest.training.attempts import Attempts


def parse_arguments() -> argparse.Namespace:
    """The command line: the model, the dataset and the results."""
    parser = command.parser(__doc__)
    parser.add_argument("--dataset", required=True, help="table of strings, in macro-batches")
    parser.add_argument("--weights", required=True, help="weights of the trained model")
    parser.add_argument("--continuations", required=True, help="table of that kind to write")
    parser.add_argument("--influences", required=True, help="table of that kind to write")
    parser.add_argument("--manifest", required=True, help="manifest to write")
    return command.parsed(parser)


def main() -> None:
    """Question in a child process, which dies with this one."""
    arguments = parse_arguments()
    # results/profiles/{model}/{language}/{stream}/manifest.json
    *_, model, language, stream, _ = Path(arguments.manifest).parts
    name = "-".join([model, language, stream, "questions"])
    sys.exit(supervise(arguments, [name], [partial(work, arguments)]))


def work(arguments: argparse.Namespace, attempts: Attempts) -> None:
    """Make both tables."""
    command.begin(arguments)
    # Imported after the relaunch, because it takes seconds, and a launcher does not need it.
    with launch.importing():
        from palimpsest.profiles.final_models import Questions, question

    questions = Questions(
        arguments.dataset,
        arguments.weights,
        arguments.continuations,
        arguments.influences,
        arguments.manifest,
    )
    question(questions, command.Assignment.of(arguments), attempts)


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
