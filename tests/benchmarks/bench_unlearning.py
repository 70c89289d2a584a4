"""What unlearning costs: every method of the table against as many steps of plain fine-tuning.

Both use the fleet, on one thread, side by side: one wave of models unlearns with a method, and
another wave of equal size trains plainly. Steps are counted in two ways. Per pass: a step with a
second batch is two passes over a batch, and gradients that only choose weights are passes, too. Per
optimiser step: one step of the method against one of plain fine-tuning, whatever else the method
does for it. Both ways include the time of everything that a method does, such as the original
models' outputs and the weights that it draws anew. At least half as fast is at most twice the cost.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", NUMBA_NUM_THREADS="1")

import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

import torch  # noqa: E402
from rows import Row, at_least, main  # noqa: E402

from palimpsest import tables  # noqa: E402
from palimpsest.corpora import GrammarCorpus  # noqa: E402
from palimpsest.datasets.sampling import Sampler  # noqa: E402
from palimpsest.jobs.fleet_models import FleetHolder  # noqa: E402
from palimpsest.models import Models, read_models  # noqa: E402
from palimpsest.models.build import build  # noqa: E402
from palimpsest.sections import KINDS  # noqa: E402
from palimpsest.training.fleet.engine import FleetEngine, Wave  # noqa: E402
from palimpsest.training.fleet.members import Member  # noqa: E402
from palimpsest.training.recipe import Recipe  # noqa: E402
from palimpsest.training.runs import Material, Run  # noqa: E402
from palimpsest.unlearning.forgetting_data import build_forgetting  # noqa: E402
from palimpsest.unlearning.methods import Method, Training, read_methods  # noqa: E402
from palimpsest.unlearning.methods.task import Task, passes_within  # noqa: E402
from palimpsest.unlearning.run.unlearn import Workbench  # noqa: E402

GRAMMAR = ROOT / "config/languages/L3.pcfg"
MODEL = "pythia-1b"
MEMBERS = 8  # a wave of one thread; 32 models are four of them
ROUNDS = 5
CUTOFF = 0.2
TINY = ("finetune", "npo", "kookmin")


def problem_in(folder: Path) -> Run:
    """80 strings of L3, ten of them to be forgotten, at the recipe of the default experiment."""
    sampler = Sampler("L3", GrammarCorpus.from_file(GRAMMAR), 0)
    variants = build_forgetting(sampler, 80, 96, 32, False, "string", 0.125)
    path = folder / "strings.parquet"
    tables.write(path, variants["original"], KINDS["strings"])
    row = read_models(ROOT / "config/models.tsv")[MODEL]
    recipe = Recipe(row.twin_learning_rate, epochs=40, zero_stage=0, checkpoint_every=0)
    return Run(f"{MODEL}-twin", row, "twin", GrammarCorpus.from_file(GRAMMAR), str(path), recipe)


def plain_wave(run: Run, folder: Path) -> Wave:
    """A wave in plain training, after its first epoch."""
    engine = FleetEngine(folder / "state", 1, 2**33)
    runs = [Run(*list(vars(run).values())[:6], replicate=replicate) for replicate in range(MEMBERS)]
    wave = Wave(engine, [Member(r, Material(r), engine.state(r)) for r in runs])
    wave._train_epoch()
    return wave


def untrained(workbench: Workbench) -> list[dict[str, torch.Tensor]]:
    """Weights to start from; how long a step takes does not depend on them."""
    run, vocabulary = workbench.run, workbench.material.vocabulary
    models = [build(run.row, "twin", vocabulary, seed, torch.float32) for seed in range(MEMBERS)]
    return [dict(model.named_parameters()) for model in models]


def seconds_of(work: Callable[[], None]) -> float:
    """CPU seconds of some work on one thread, whatever else the machine does."""
    began = time.process_time()
    work()
    return time.process_time() - began


def side_by_side(
    workbench: Workbench, method: Method, weights, wave: Wave, rounds: int
) -> tuple[float, float, int]:
    """Seconds of unlearning, seconds of an epoch of plain training, and the method's passes.

    Both times are the best of some rounds. In each round, one directly follows the other.
    """
    ours, plain = [], []
    for round_ in range(rounds):
        plain.append(seconds_of(wave._train_epoch))
        models = workbench.holder.open(weights)
        task = task_of(workbench, models, round_)
        ours.append(seconds_of(lambda task=task: task.run(method.phases)))
    return min(ours), min(plain), task.steps


def task_of(workbench: Workbench, models: Models, round_: int) -> Task:
    """The task of a round; the budget is a fifth of retraining."""
    recipe = workbench.run.recipe
    return Task(
        models,
        workbench.material.encoded,
        workbench.rows,
        rate=recipe.learning_rate,
        batch_size=recipe.batch_size,
        seeds=[(0, member, round_) for member in range(MEMBERS)],
        budget=budget_of(workbench),
    )


def budget_of(workbench: Workbench) -> int:
    """The passes that a method may make: a fifth of retraining."""
    recipe = workbench.run.recipe
    n_retain = len(workbench.rows["retain"])
    return passes_within(CUTOFF, recipe.epochs, n_retain, recipe.batch_size)


def optimizer_steps(workbench: Workbench, method: Method) -> int:
    """Number of optimiser steps of a method."""
    training = [phase for phase in method.phases if isinstance(phase, Training)]
    return sum(phase.steps(budget_of(workbench)) for phase in training)


def rows(tiny: bool) -> Iterator[Row]:
    """Two rows per method: passes and optimiser steps per second, and plain fine-tuning's steps."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = problem_in(folder)
        workbench = Workbench(
            run, lambda run, material: FleetHolder(run, material, threads=1, memory=2**33)
        )
        weights = untrained(workbench)
        methods = read_methods(ROOT / "config/unlearning.yaml")
        for name in TINY if tiny else methods:
            method = methods[name]
            wave = plain_wave(run, folder)
            seconds, plain, passes = side_by_side(
                workbench, method, weights, wave, 1 if tiny else ROUNDS
            )
            plain_rate = MEMBERS * wave.members[0].steps_per_epoch / plain
            steps = optimizer_steps(workbench, method)
            for count, what in (passes, "passes"), (steps, "optimiser steps"):
                yield at_least(
                    f"{method.name}, {count} {what}; peer: plain steps",
                    MEMBERS * count / seconds,
                    plain_rate,
                    f"{what.split()[-1]}/s",
                    target_ratio=0.5,
                )


if __name__ == "__main__":
    sys.exit(main(rows))
