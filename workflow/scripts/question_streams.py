"""Question the trained models of streams: greedy decoding, and influence functions.

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

# The fields of `Questions`
FILES = {
    "dataset": "tables of strings, in macro-batches",
    "weights": "weights of the trained models",
    "continuations": "tables of this kind to write",
    "influences": "tables of this kind to write",
    "manifest": "manifests to write",
}


def parse_arguments() -> argparse.Namespace:
    """The command line: the model, and the datasets and results, one for each stream."""
    parser = command.parser(__doc__)
    for name, meaning in FILES.items():
        parser.add_argument(f"--{name}", nargs="+", required=True, help=meaning)
    return command.parsed(parser)


def main() -> None:
    """Question in child processes, which die with this one.

    DeepSpeed is set up once in a process, so each of its models has a process of its own.
    """
    arguments = parse_arguments()
    # results/profiles/{model}/{language}/{stream}/manifest.json
    names = ["-".join([*Path(path).parts[-4:-1], "questions"]) for path in arguments.manifest]
    files = list(zip(*(getattr(arguments, name) for name in FILES), strict=True))
    parts = [files] if arguments.engine == "fleet" else [[each] for each in files]
    sys.exit(supervise(arguments, names, [partial(work, arguments, part) for part in parts]))


def work(arguments: argparse.Namespace, files: list[tuple], attempts: Attempts) -> None:
    """Make both tables of some streams."""
    command.begin(arguments)
    # Imported after the relaunch, because it takes seconds, and a launcher does not need it.
    with launch.importing():
        from palimpsest.profiles.final_models import Questions, question

    question([Questions(*each) for each in files], command.Assignment.of(arguments), attempts)


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
