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

# One process asks one model, which is not trained.
ALONE = {
    "processes": 1,
    "zero_stage": 0,
    "offload_optimizer": "none",
    "micro_batch_size": 1,
    "precision": "fp32",
}


def parse_arguments() -> argparse.Namespace:
    """The command line: the records, the checkpoint and the reference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--language", required=True, help="name of the records")
    parser.add_argument("--name", required=True, help="name of the checkpoint")
    parser.add_argument("--corpus", required=True, help="table of the records")
    parser.add_argument("--table", required=True, help="table of losses to write")
    parser.add_argument("--model", required=True, help="folder or hub name of the checkpoint")
    parser.add_argument("--reference", help="folder or hub name of the reference model")
    parser.add_argument(
        "--evaluation-batch-size", type=int, default=16, help="records per forward pass"
    )
    parser.add_argument("--state", required=True, help="folder for locks and notes")
    parser.add_argument("--gpus", type=int, default=0, help="GPUs to wait for; 0: use the CPU")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads")
    parser.set_defaults(**ALONE)
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

    job = RecordsJob(
        arguments.language,
        arguments.name,
        arguments.corpus,
        arguments.table,
        arguments.model,
        arguments.reference,
        arguments.threads,
    )
    measure_records(job, attempts)


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
