"""Measure the strings of a panel under one checkpoint of a model.

The job waits for a free GPU, and for another job on the same panel and checkpoint to end.
"""

import argparse
import sys
from functools import partial

from palimpsest import launch
from palimpsest.jobs import command
from palimpsest.jobs.supervision import supervise
from palimpsest.training.attempts import Attempts


def parse_arguments() -> argparse.Namespace:
    """The command line: the strings and the checkpoint."""
    parser = command.parser_of_one_model(__doc__, "strings", at_once=8)
    parser.add_argument("--name", required=True, help="name of the panel")
    parser.add_argument("--time", required=True, type=float, help="step of the checkpoint")
    parser.add_argument("--model", required=True, help="folder or hub name of the checkpoint")
    parser.add_argument("--rows", required=True, help="table of the rows that are measured")
    parser.add_argument("--tokens", help="token file (.npy)")
    parser.add_argument("--texts", help="in its place, a table of strings")
    parser.add_argument("--table", required=True, help="table of outcomes to write")
    parser.set_defaults(precision="fp32")
    return parser.parse_args()


def main() -> None:
    """Measure in a child process, which dies with this one."""
    arguments = parse_arguments()
    names = [f"panel-{arguments.name}-{arguments.time:.0f}"]
    sys.exit(supervise(arguments, names, [partial(work, arguments)]))


def work(arguments: argparse.Namespace, attempts: Attempts) -> None:
    """Write the table of outcomes."""
    command.begin(arguments)
    # Imported after the number of threads is set, because it imports torch.
    with launch.importing():
        from palimpsest.profiles.panel_asking import PanelJob, ask_panel

    ask_panel(command.job_of(PanelJob, arguments), attempts)


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
