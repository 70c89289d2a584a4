"""Query the trained models of some runs: write tables about each run's model.

A job waits for free GPUs, and for another job on the same models to end. DeepSpeed is set up once
in a process, so each of its models has a process of its own.
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
    parser.add_argument("--weights", nargs="+", required=True, help="weights of the models")
    parser.add_argument(
        "--tables",
        nargs="+",
        action="append",
        required=True,
        help="tables of one kind to write, one per dataset; once for each kind",
    )
    parser.add_argument("--manifest", nargs="+", required=True, help="manifests to write")
    return command.parsed(parser)


def main() -> None:
    """Query the models in child processes, which die with this one."""
    arguments = parse_arguments()
    of_runs = zip(*arguments.tables, strict=True)
    runs = list(zip(arguments.dataset, arguments.weights, of_runs, arguments.manifest, strict=True))
    name = arguments.query.rpartition(":")[2]
    # results/{section}/{the folders of the run}/manifest.json
    names = ["-".join([*Path(path).parts[2:-1], name]) for path in arguments.manifest]
    parts = [runs] if arguments.engine == "fleet" else [[run] for run in runs]
    sys.exit(supervise(arguments, names, [partial(work, arguments, part) for part in parts]))


def work(arguments: argparse.Namespace, runs: list[tuple], attempts: Attempts) -> None:
    """Query the models of some runs."""
    command.begin(arguments)
    # Imported after the relaunch, because it takes seconds, and a launcher does not need it.
    with launch.importing():
        from palimpsest.jobs.query import QueryFiles, query_named, run_queries

        asked = query_named(arguments.query)
    files = [QueryFiles(*run) for run in runs]
    assignment = command.Assignment.of(arguments)
    run_queries(asked, files, arguments.values, assignment, attempts)


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
