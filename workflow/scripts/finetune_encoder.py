"""Fine-tune an encoder to classify texts, and keep its activations on others.

The job waits for a free GPU, and for another job on the same run to end.
"""

import argparse
import sys
from functools import partial

from palimpsest import launch
from palimpsest.jobs import command
from palimpsest.jobs.supervision import supervise
from palimpsest.training.attempts import Attempts


def parse_arguments() -> argparse.Namespace:
    """The command line: the run, its texts and how it is trained."""
    parser = command.parser_of_one_model(__doc__, "texts", at_once=64)
    parser.add_argument("--study", required=True, help="name of the study")
    parser.add_argument("--variant", required=True, help="what is done to the training texts")
    parser.add_argument("--seed", required=True, type=int, help="seed of the run")
    parser.add_argument("--model", required=True, help="folder of the encoder")
    parser.add_argument("--random-weights", action="store_true", help="do not read its weights")
    parser.add_argument("--records", required=True, help="table of labelled texts")
    parser.add_argument("--size", required=True, type=int, help="texts to train on")
    parser.add_argument("--tests", required=True, type=int, help="most texts to evaluate")
    parser.add_argument("--epochs", required=True, type=int, help="epochs")
    parser.add_argument("--batch-size", required=True, type=int, help="texts in a step")
    parser.add_argument("--rate", required=True, type=float, help="learning rate at the start")
    parser.add_argument("--label-noise", required=True, type=float, help="share of wrong labels")
    parser.add_argument("--precision", default="auto", help="of products: auto, fp32 or bf16")
    parser.add_argument("--cls", required=True, help="activations of first tokens to write (.npz)")
    parser.add_argument("--mean", required=True, help="means of activations to write (.npz)")
    parser.add_argument("--answers", required=True, help="table of answers to write")
    parser.add_argument("--run", required=True, help="table of the run to write")
    arguments = parser.parse_args()
    arguments.micro_batch_size = arguments.batch_size
    return arguments


def main() -> None:
    """Fine-tune in a child process, which dies with this one."""
    arguments = parse_arguments()
    names = [f"encoder-{arguments.study}-{arguments.variant}-{arguments.seed}"]
    sys.exit(supervise(arguments, names, [partial(work, arguments)]))


def work(arguments: argparse.Namespace, attempts: Attempts) -> None:
    """Write the activations and tables of the run."""
    command.begin(arguments)
    # Imported after the number of threads is set, because it imports torch.
    with launch.importing():
        from palimpsest.information.encoders.training import EncoderJob, finetune_encoder

    finetune_encoder(command.job_of(EncoderJob, arguments), attempts)


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
