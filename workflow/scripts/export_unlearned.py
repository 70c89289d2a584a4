"""Apply one unlearning method to one trained model, and write the unlearned model into a folder.

The folder is as Hugging Face's `save_pretrained` leaves it. A job waits for free GPUs, and for
another job on the same model to end.
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


def parse_arguments() -> argparse.Namespace:
    """The command line: the models, the dataset, the method and the folder."""
    parser = command.parser(__doc__)
    parser.add_argument("--dataset", required=True, help="table of strings, some to be forgotten")
    parser.add_argument("--weights", nargs="+", required=True, help="weights of trained models")
    parser.add_argument(
        "--wanted", type=json.loads, required=True, help="the method and the model, as JSON"
    )
    parser.add_argument("--cutoff", type=float, required=True, help="largest share of retraining")
    parser.add_argument("--folder", required=True, help="the folder to write")
    return command.parsed(parser)


def main() -> None:
    """Unlearn in a child process, which dies with this one."""
    arguments = parse_arguments()
    # results/unlearning/{recipe}/{model}/{language}/{problem}/unlearned/{method}/model-{origin}
    name = "-".join(Path(arguments.folder).parts[-7:])
    sys.exit(supervise(arguments, [name], [partial(work, arguments)]))


def work(arguments: argparse.Namespace, attempts: Attempts) -> None:
    """Unlearn and write."""
    command.begin(arguments)
    # Imported after the relaunch, because it takes seconds, and a launcher does not need it.
    with launch.importing():
        from palimpsest.unlearning.run.exported import Wanted, export_unlearned

    given = dict(arguments.wanted)
    method = Method.from_json(given.pop("method"), json.dumps(given.pop("phases")))
    export_unlearned(
        Wanted(method=method, cutoff=arguments.cutoff, **given),
        command.Assignment.of(arguments),
        arguments.dataset,
        arguments.weights,
        arguments.folder,
        attempts,
    )


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
