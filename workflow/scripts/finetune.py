"""Train models on datasets and leave their traces.

One process trains on all the given datasets, so that small models share one start-up: all at once
with the engine fleet, one after another with the engine deepspeed. Each run of a full model has a
separate process, because DeepSpeed does not free all memory of a finished model. A trace in a
folder leave-one-out holds many runs, each trained without one of the dataset's strings; with
--left-out, at most so many. With --replicates, a trace holds one run for each number. A killed run
resumes from its last checkpoint when the same command is given again. A job waits for free GPUs,
and for another job on the same runs to end. A job that runs out of memory tries again with fewer
strings per forward pass.
"""

import argparse
import sys
from functools import partial
from pathlib import Path

from palimpsest import launch
from palimpsest.jobs import command
from palimpsest.jobs.supervision import supervise
from palimpsest.models.table import TWIN
from palimpsest.regimes import SINGLE, Regime, Replicates, named
from palimpsest.training.attempts import Attempts
from palimpsest.training.trackers import named as trackers_named

# What only some runs write, into the folder of their trace
BESIDE_TRACES = ("weights", "tokens", "checkpoints")


def parse_arguments() -> argparse.Namespace:
    """The command line: model, datasets and results, and one flag per key of the recipe."""
    parser = command.parser(__doc__)
    parser.add_argument("--dataset", nargs="+", required=True, help="tables of strings to train on")
    parser.add_argument(
        "--trace", nargs="+", required=True, help="traces to write, one per dataset"
    )
    parser.add_argument("--manifest", nargs="+", required=True, help="manifests, one per dataset")
    parser.add_argument(
        "--weights", nargs="*", default=[], help="weights to write, beside some traces"
    )
    parser.add_argument(
        "--regimes", nargs="*", default=[], help="names of regimes, one per dataset, or single"
    )
    parser.add_argument("--left-out", type=int, help="number of strings for leave-one-out")
    parser.add_argument(
        "--tokens", nargs="*", default=[], help="losses of tokens to write, beside some traces"
    )
    parser.add_argument(
        "--checkpoints",
        nargs="*",
        default=[],
        help="folders for the weights after every epoch that is measured, beside some traces",
    )
    parser.add_argument(
        "--trackers",
        type=trackers_named,
        default=(),
        help="tensorboard, wandb, both with a comma, or none",
    )
    parser.add_argument("--replicates", nargs=2, type=int, help="first and last of many trainings")
    return command.parsed(parser)


def main() -> None:
    """Train in child processes: one for a twin, one per dataset for a full model.

    The last child delivers all results.
    """
    arguments = parse_arguments()
    names = ["-".join([*Path(trace).parts[-7:-1], Path(trace).stem]) for trace in arguments.trace]
    sys.exit(supervise(arguments, names, works(arguments)))


def works(arguments: argparse.Namespace) -> list[partial]:
    """Training on each dataset but the last separately, for a full model; then on all datasets."""
    alone = [] if arguments.model.endswith(TWIN) else range(len(arguments.dataset) - 1)
    return [*(partial(train, arguments, only=place) for place in alone), partial(train, arguments)]


def train(arguments: argparse.Namespace, attempts: Attempts, only: int | None = None) -> None:
    """Train on every dataset and deliver all results at once; or train on one and deliver none.

    `only` is the index of this dataset.
    """
    command.begin(arguments)
    # Imported after the relaunch, because it takes seconds, and a launcher does not need it.
    with launch.importing():
        from palimpsest.jobs.finetune import Job, finetune

    files = zip(
        arguments.dataset, arguments.trace, arguments.manifest, regimes(arguments), strict=True
    )
    beside = {name: by_folder(getattr(arguments, name)) for name in BESIDE_TRACES}
    jobs = [
        Job(
            dataset,
            trace,
            manifest,
            regime=regime,
            **{name: paths.get(Path(trace).parent) for name, paths in beside.items()},
        )
        for dataset, trace, manifest, regime in files
    ]
    finetune(
        command.Assignment.of(arguments),
        jobs if only is None else [jobs[only]],
        attempts,
        delivers=only is None,
        trackers=arguments.trackers,
    )


def by_folder(paths: list[str]) -> dict[Path, str]:
    return {Path(path).parent: path for path in paths}


def regimes(arguments: argparse.Namespace) -> list[Regime]:
    """The regime of each dataset."""
    if arguments.replicates:
        first, last = arguments.replicates
        return [Replicates(range(first, last + 1))] * len(arguments.dataset)
    names = arguments.regimes or [SINGLE.name] * len(arguments.dataset)
    return [named(name, arguments.left_out) for name in names]


if __name__ == "__main__":
    with command.ending_in_one_line():
        main()
