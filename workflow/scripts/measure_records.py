"""Measure the losses of records under a checkpoint, and under a reference model.

The job waits for a free GPU, and for another job on the same records and checkpoint to end.
"""

import argparse
import sys
from dataclasses import fields
from functools import partial

from palimpsest import launch
from palimpsest.jobs import command
from palimpsest.jobs.supervision import supervise
from palimpsest.training.attempts import Attempts


def parse_arguments() -> argparse.Namespace:
    """The command line: the records, the checkpoint and the reference."""
    parser = command.parser_of_one_model(__doc__, "records", at_once=16)
    parser.add_argument("--language", required=True, help="name of the records")
    parser.add_argument("--name", required=True, help="name of the checkpoint")
    parser.add_argument("--corpus", required=True, help="table of the records")
    parser.add_argument("--table", required=True, help="table of losses to write")
    parser.add_argument("--model", required=True, help="folder or hub name of the checkpoint")
    parser.add_argument("--reference", help="folder or hub name of the reference model")
    parser.set_defaults(precision="fp32")
    return parser.parse_args()


def main() -> None:
    """Measure in a child process, which dies with this one."""
    arguments = parse_arguments()
    names = [f"records-{arguments.language}-{arguments.name}"]
    sys.exit(supervise(arguments, names, [partial(work, arguments)]))


def work(arguments: argparse.Namespace, attempts: Attempts) -> None:
    """Write the table of losses."""
    command.begin(arguments)
    # Imported after the number of threads is set, because it imports torch.
    with launch.importing():
        from palimpsest.records.asking import RecordsJob, measure_records

    given = {field.name: getattr(arguments, field.name) for field in fields(RecordsJob)}
    measure_records(RecordsJob(**given), attempts)


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
