"""Ask a model, and its references, about records: every token, and how they go on.

The job waits for a free GPU, and for another job on the same records and target to end.
"""

import argparse
import sys
from functools import partial

from palimpsest import launch
from palimpsest.jobs import command
from palimpsest.jobs.supervision import supervise
from palimpsest.training.attempts import Attempts


def parse_arguments() -> argparse.Namespace:
    """The command line: the records, the target and its references."""
    parser = command.parser_about_records(__doc__)
    parser.add_argument("--passes", required=True, help="table of tokens to write")
    parser.add_argument("--continuations", required=True, help="table of continuations to write")
    parser.add_argument(
        "--reference",
        nargs=2,
        action="append",
        default=[],
        metavar=("NAME", "MODEL"),
        help="name, and folder or hub name, of a reference model",
    )
    parser.add_argument("--attacks", nargs="*", default=[], help="names of attacks")
    parser.add_argument("--prompt", type=int, default=32, help="tokens of a prompt")
    parser.add_argument("--continuation", type=int, default=32, help="tokens of a continuation")
    parser.add_argument("--neighbours", type=int, default=8, help="changed texts of each record")
    parser.add_argument("--prefixes", type=int, default=7, help="records before a text")
    parser.add_argument("--secrets", type=int, default=0, help="other digits of each record")
    return parser.parse_args()


def main() -> None:
    """Ask in a child process, which dies with this one."""
    arguments = parse_arguments()
    names = [f"audit-{arguments.language}-{arguments.name}"]
    sys.exit(supervise(arguments, names, [partial(work, arguments)]))


def work(arguments: argparse.Namespace, attempts: Attempts) -> None:
    """Write the tables."""
    command.begin(arguments)
    # Imported after the number of threads is set, because it imports torch.
    with launch.importing():
        from palimpsest.audit.asking import AuditJob, audit_target

    audit_target(command.job_of(AuditJob, arguments), attempts)


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
