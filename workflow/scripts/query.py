"""Query trained models: write tables about the model of each of some runs, or about all of them.

A query may also make a model, which is written into the folder of its manifest. When the same
command is given again, a killed job continues with the models that it has not finished. A job waits
for free GPUs, and for another job on the same models to end. DeepSpeed is set up once in a process,
so the models of each dataset have a process of their own.
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
    parser = command.parser(__doc__)
    parser.add_argument("--query", required=True, help="module:function that makes the tables")
    parser.add_argument("--values", type=json.loads, default={}, help="its values, as JSON")
    parser.add_argument("--dataset", nargs="+", required=True, help="tables of strings")
    parser.add_argument(
        "--weights",
        nargs="+",
        required=True,
        help="weights of the models, one file per dataset; all files, if there is one dataset",
    )
    parser.add_argument(
        "--tables",
        nargs="+",
        action="append",
        default=[],
        help="tables of one kind to write, one per manifest; once for each kind",
    )
    parser.add_argument("--manifest", nargs="+", required=True, help="manifests to write")
    return command.parsed(parser)


def main() -> None:
    """Query the models in child processes, which die with this one."""
    arguments = parse_arguments()
    runs = runs_of(arguments)
    name = arguments.query.rpartition(":")[2]
    # results/{section}/{the folders of the run}/manifest.json
    names = ["-".join([*Path(path).parts[2:-1], name]) for path in arguments.manifest]
    are_together = arguments.engine == "fleet" or len(arguments.dataset) == 1
    parts = [runs] if are_together else [[run] for run in runs]
    sys.exit(supervise(arguments, names, [partial(work, arguments, part) for part in parts]))


def runs_of(arguments: argparse.Namespace) -> list[tuple]:
    """The values of `QueryFiles` for every manifest; an only dataset may have several manifests."""
    tables = list(zip(*arguments.tables, strict=True)) or [()] * len(arguments.manifest)
    if len(arguments.dataset) == 1:
        models = [(*arguments.dataset, arguments.weights)] * len(arguments.manifest)
    else:
        given = zip(arguments.dataset, arguments.weights, strict=True)
        models = [(dataset, [weights]) for dataset, weights in given]
    made = zip(models, tables, arguments.manifest, strict=True)
    return [(*of_run, *files) for of_run, *files in made]


def work(arguments: argparse.Namespace, runs: list[tuple], attempts: Attempts) -> None:
    """Query the models of some runs."""
    command.begin(arguments)
    # Imported after the relaunch, because it takes seconds, and a launcher does not need it.
    with launch.importing():
        from palimpsest.jobs.query import QueryFiles, query_named

        query = query_named(arguments.query)
    files = [QueryFiles(*run) for run in runs]
    query.run(files, arguments.values, command.Assignment.of(arguments), attempts)


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
