"""Embed the strings of datasets by the models that are trained on them.

A job waits for free GPUs, and for another job on the same models to end.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from palimpsest import launch
from palimpsest.jobs import command
from palimpsest.jobs.supervision import supervise
from palimpsest.training.attempts import Attempts

# The fields of `Embedded`
FILES = {
    "dataset": "tables of strings",
    "weights": "weights of the trained models",
    "embeddings": "tables of this kind to write",
    "manifest": "manifests to write",
}


def parse_arguments() -> argparse.Namespace:
    """The command line: the model, and the datasets and results, one for each run."""
    parser = command.parser(__doc__)
    for name, meaning in FILES.items():
        parser.add_argument(f"--{name}", nargs="+", required=True, help=meaning)
    return command.parsed(parser)


def main() -> None:
    """Embed in child processes, which die with this one.

    DeepSpeed is set up once in a process, so each of its models has a process of its own.
    """
    arguments = parse_arguments()
    # results/density/{model}/{language}/{size and seed}/{variant}/manifest.json
    names = ["-".join([*Path(path).parts[-5:-1], "embeddings"]) for path in arguments.manifest]
    files = list(zip(*(getattr(arguments, name) for name in FILES), strict=True))
    parts = [files] if arguments.engine == "fleet" else [[each] for each in files]
    sys.exit(supervise(arguments, names, [partial(work, arguments, part) for part in parts]))


def work(arguments: argparse.Namespace, files: list[tuple], attempts: Attempts) -> None:
    """Make the tables of some runs."""
    command.begin(arguments)
    # Imported after the relaunch, because it takes seconds, and a launcher does not need it.
    with launch.importing():
        from palimpsest.density.embedding import Embedded, embed

    embed([Embedded(*each) for each in files], command.Assignment.of(arguments), attempts)


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
