"""Measure the losses of records under a checkpoint, and under a reference model.

The job waits for a free GPU, and for another job on the same records and checkpoint to end.
"""

import argparse
import sys
from functools import partial

from palimpsest import launch
from palimpsest.jobs import command
from palimpsest.jobs.supervision import supervise
from palimpsest.training.attempts import Attempts


def parse_arguments() -> argparse.Namespace:
    """The command line: the records, the checkpoint and the reference."""
    parser = command.parser_about_records(__doc__)
    parser.add_argument("--table", required=True, help="table of losses to write")
    parser.add_argument("--reference", help="folder or hub name of the reference model")
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

    measure_records(command.job_of(RecordsJob, arguments), attempts)


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
