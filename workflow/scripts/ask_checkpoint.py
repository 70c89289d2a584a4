"""Ask a checkpoint for answers to the prompts of records: every token, and its own greedy answers.

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
    """The command line: the records, the checkpoint, and how it is asked."""
    parser = command.parser_of_one_model(__doc__, "records", at_once=16)
    parser.add_argument("--language", required=True, help="name of the records")
    parser.add_argument("--name", required=True, help="name of the checkpoint")
    parser.add_argument("--corpus", required=True, help="table of the records")
    parser.add_argument("--table", required=True, help="table of answers to write")
    parser.add_argument("--model", required=True, help="folder or hub name of the checkpoint")
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
    parser.set_defaults(precision="fp32")
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

    given = {field.name: getattr(arguments, field.name) for field in fields(CheckpointJob)}
    ask_checkpoint(CheckpointJob(**given), attempts)


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
