"""The command of jobs that query the trained model of each of some runs.

A job waits for free GPUs, and for another job on the same models to end.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from types import MappingProxyType

from palimpsest.jobs import command
from palimpsest.jobs.supervision import supervise
from palimpsest.training.attempts import Attempts

# What every such job is given for each run, in addition to the tables that it writes
DATASET, WEIGHTS, MANIFEST = "dataset", "weights", "manifest"
NO_FLAGS = MappingProxyType({})
# Arguments: for each run its dataset, weights, tables in order and manifest; how; what was learned;
# and by their names the values of the job's own flags.
Make = Callable[..., None]


def main(
    description: str,
    tables: Mapping[str, str],
    name: str,
    make: Make,
    flags: Mapping[str, Mapping] = NO_FLAGS,
) -> None:
    """Query the models in child processes, which die with this one.

    DeepSpeed is set up once in a process, so each of its models has a process of its own.

    Parameters
    ----------
    description : what the command does, for `--help`
    tables : meanings of the tables that are written for each run, by their names in the command
    name : what the job is called in messages
    make : makes the tables of some runs
        It imports what it needs itself, because this takes seconds and a launcher does not need it.
    flags : the job's own flags, by their names, each with arguments of `add_argument`
    """
    with command.ending_in_one_line():
        arguments = _parsed(description, tables, flags)
        # results/{section}/{the folders of the run}/manifest.json
        names = ["-".join([*Path(path).parts[2:-1], name]) for path in arguments.manifest]
        fields = (DATASET, WEIGHTS, *tables, MANIFEST)
        files = list(zip(*(getattr(arguments, field) for field in fields), strict=True))
        parts = [files] if arguments.engine == "fleet" else [[each] for each in files]
        own = {flag: getattr(arguments, flag) for flag in flags}
        jobs = [partial(_work, arguments, partial(make, **own), part) for part in parts]
        sys.exit(supervise(arguments, names, jobs))


def _parsed(
    description: str, tables: Mapping[str, str], flags: Mapping[str, Mapping]
) -> argparse.Namespace:
    """The command line: the model, the files of each run, and the job's own flags."""
    parser = command.parser(description)
    meanings = {
        DATASET: "tables of strings",
        WEIGHTS: "weights of the trained models",
        **tables,
        MANIFEST: "manifests to write",
    }
    for field, meaning in meanings.items():
        parser.add_argument(f"--{field}", nargs="+", required=True, help=meaning)
    for flag, options in flags.items():
        parser.add_argument(f"--{flag}", required=True, **options)
    return command.parsed(parser)


def _work(arguments: argparse.Namespace, make: Make, files: list, attempts: Attempts) -> None:
    """Make the tables of some runs."""
    command.begin(arguments)
    make(files, command.Assignment.of(arguments), attempts)
