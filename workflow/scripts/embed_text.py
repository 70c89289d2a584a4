"""Embed the segments of a text, and measure a language model on its queries.

The job waits for free GPUs, and for another job on the same text to end.
"""

import argparse
import sys
from functools import partial

from palimpsest import launch
from palimpsest.jobs import command
from palimpsest.jobs.supervision import supervise
from palimpsest.training.attempts import Attempts


def parse_arguments() -> argparse.Namespace:
    """The command line: the text, the embedding and the language model."""
    parser = command.parser_of_one_model(__doc__, "segments", at_once=64)
    parser.add_argument("--name", required=True, help="name of the text")
    parser.add_argument("--segments", required=True, help="table of segments")
    parser.add_argument("--embeddings", required=True, help="table of this kind to write")
    parser.add_argument("--corpus", help="table of embeddings of the corpus; for queries only")
    parser.add_argument("--embedding", required=True, help="ngrams, hidden, or a model's folder")
    parser.add_argument("--model", help="language model; without it, queries have no losses")
    parser.add_argument("--models", required=True, help="the table of models (TSV)")
    parser.add_argument("--precision", default="auto", help="precision of the language model")
    return parser.parse_args()


def main() -> None:
    """Embed in a child process, which dies with this one."""
    arguments = parse_arguments()
    names = [f"text-{arguments.name}"]
    sys.exit(supervise(arguments, names, [partial(work, arguments)]))


def work(arguments: argparse.Namespace, attempts: Attempts) -> None:
    """Make the table of the text."""
    command.begin(arguments)
    # Imported after the number of threads is set, because it imports torch.
    with launch.importing():
        from palimpsest.density.text_embedding import TextJob, embed_text

    embed_text(command.job_of(TextJob, arguments), attempts)


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
