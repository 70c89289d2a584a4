"""Apply points of the grids of unlearning methods to trained models, and write the losses.

When the same command is given again, a killed job continues with the models that it has not
unlearned yet. A job waits for free GPUs, and for another job on the same models to end.
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


def parse_arguments() -> argparse.Namespace:
    """The command line: the models, the dataset, the points and the results."""
    parser = command.parser(__doc__)
    parser.add_argument("--dataset", required=True, help="table of strings, some to be forgotten")
    parser.add_argument("--weights", nargs="+", required=True, help="weights of trained models")
    parser.add_argument(
        "--points", type=json.loads, required=True, help="phases of points by method, as JSON"
    )
    parser.add_argument("--n", type=int, required=True, help="number of models of each point")
    parser.add_argument("--cutoff", type=float, required=True, help="share of a retraining's steps")
    # One file for each method, in the order of --points
    parser.add_argument("--searched", nargs="+", required=True, help="tables to write")
    parser.add_argument("--manifests", nargs="+", required=True, help="manifests to write")
    return command.parsed(parser)


def main() -> None:
    """Search in a child process, which dies with this one."""
    arguments = parse_arguments()
    *_, recipe, model, language, problem, _, _, _ = Path(arguments.manifests[0]).parts
    name = "-".join([recipe, model, language, problem, "search"])
    sys.exit(supervise(arguments, [name], [partial(work, arguments)]))


def work(arguments: argparse.Namespace, attempts: Attempts) -> None:
    """Apply all points of all methods."""
    command.begin(arguments)
    # Imported after the relaunch, because it takes seconds, and a launcher does not need it.
    with launch.importing():
        from palimpsest.unlearning.tuning.search import Search, search

    files = zip(arguments.searched, arguments.manifests, strict=True)
    searches = [
        Search.of(method, points, arguments.n, arguments.cutoff, *paths)
        for (method, points), paths in zip(arguments.points.items(), files, strict=True)
    ]
    search(
        searches,
        command.Assignment.of(arguments),
        arguments.dataset,
        arguments.weights,
        attempts,
    )


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
