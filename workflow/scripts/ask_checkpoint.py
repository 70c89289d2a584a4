"""Ask a checkpoint for answers to the prompts of records: every token, and its own greedy answers.

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
    """The command line: the records, the checkpoint, and how it is asked."""
    parser = command.parser_about_records(__doc__)
    parser.add_argument("--table", required=True, help="table of answers to write")
    parser.add_argument("--template", help="text with {prompt} and {answer}")
    parser.add_argument("--chat", help="JSON object: use the chat template, with these values")
    parser.add_argument("--most", type=int, default=200, help="tokens of a generated answer")
    parser.add_argument("--bits", type=int, help="bits of a weight, to which weights are rounded")
    parser.add_argument(
        "--relearn-steps",
        type=int,
        default=0,
        help="steps of training on one half of the forget records, before the others are asked",
    )
    parser.add_argument("--relearn-rate", type=float, default=1e-5, help="learning rate of these")
    return parser.parse_args()


def main() -> None:
    """Ask in a child process, which dies with this one."""
    arguments = parse_arguments()
    names = [f"checkpoint-{arguments.language}-{arguments.name}"]
    sys.exit(supervise(arguments, names, [partial(work, arguments)]))


def work(arguments: argparse.Namespace, attempts: Attempts) -> None:
    """Write the table of answers."""
    command.begin(arguments)
    # Imported after the number of threads is set, because it imports torch.
    with launch.importing():
        from palimpsest.audit.checkpoints.asking import CheckpointJob, ask_checkpoint

    ask_checkpoint(command.job_of(CheckpointJob, arguments), attempts)


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
