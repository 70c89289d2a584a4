"""What unlearning costs: every method of the table against as many steps of plain fine-tuning.

Both are of the fleet, on one thread, side by side: one wave of models unlearns with a method, and
one of as many models takes as many training steps, as the method counts its own (every forward and
backward pass over a batch). What a method does beside these passes (the original models' outputs,
the weights that it draws anew) is in its time.
"""

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from rows import Row, at_least

from palimpsest import tables
from palimpsest.datasets.build import Sampler
from palimpsest.datasets.forgetting import build_forgetting
from palimpsest.languages import Grammar
from palimpsest.models import read_models
from palimpsest.models.build import build
from palimpsest.training.fleet.engine import FleetEngine, Wave
from palimpsest.training.fleet.members import Member
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Material, Run
from palimpsest.unlearning import fleet_engine
from palimpsest.unlearning.methods import read_methods
from palimpsest.unlearning.unlearn import Problem

ROOT = Path(__file__).resolve().parents[2]
GRAMMAR = ROOT / "config/languages/L3.pcfg"
MODEL = "pythia-1b"
MEMBERS = 8  # a wave of one thread; 32 models are four of them
ROUNDS = 3


def problem_in(folder: Path) -> Run:
    """The default study's problem: 80 strings of L3, ten to be forgotten."""
    sampler = Sampler("L3", Grammar.from_file(GRAMMAR), 0)
    variants = build_forgetting(sampler, 80, 96, 32, False, "string", 0.125)
    path = folder / "strings.parquet"
    tables.write(path, variants["original"], "strings")
    row = read_models(ROOT / "config/models.tsv")[MODEL]
    recipe = Recipe(row.twin_learning_rate, epochs=40, zero_stage=0, checkpoint_every=0)
    return Run(f"{MODEL}-twin", row, "twin", Grammar.from_file(GRAMMAR), str(path), recipe)


def plain_seconds(run: Run, folder: Path) -> float:
    """Seconds of one training step of the whole wave: the best of some epochs."""
    engine = FleetEngine(folder / "state", 1, 2**33)
    runs = [Run(*list(vars(run).values())[:6], draw=draw) for draw in range(MEMBERS)]
    wave = Wave(engine, [Member(r, Material(r), engine.state(r)) for r in runs])
    steps, best = wave.members[0].steps_per_epoch, np.inf
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        wave._train_epoch()
        best = min(best, (time.perf_counter() - began) / steps)
    return best


def untrained(problem: Problem) -> list[dict[str, torch.Tensor]]:
    """Weights to start from; how long a step takes does not depend on them."""
    run, vocabulary = problem.run, problem.material.vocabulary
    models = [build(run.row, "twin", vocabulary, seed, torch.float32) for seed in range(MEMBERS)]
    return [dict(model.named_parameters()) for model in models]


def method_seconds(problem: Problem, method, weights) -> tuple[float, int]:
    """Seconds in which a wave unlearns, the best of some rounds, and the passes that it takes."""
    best, steps = np.inf, 0
    for round_ in range(ROUNDS):
        models = problem.engine.open(weights)
        task = problem.task(models, [(0, member, round_) for member in range(MEMBERS)])
        began = time.perf_counter()
        task.run(method.phases)
        best, steps = min(best, time.perf_counter() - began), task.steps
    return best, steps


def rows() -> Iterator[Row]:
    """One row per method: steps per second of a model, ours and plain fine-tuning's."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        run = problem_in(folder)
        problem = Problem(run, fleet_engine.FleetEngine(run, 1, 2**33))
        weights = untrained(problem)
        for method in read_methods(ROOT / "config/unlearning.yaml").values():
            plain = plain_seconds(run, folder)
            seconds, steps = method_seconds(problem, method, weights)
            yield at_least(
                f"{method.name}, {steps} passes; peer: plain steps",
                MEMBERS * steps / seconds,
                MEMBERS / plain,
                "steps/s",
                target_ratio=0.5,
            )


if __name__ == "__main__":
    from rows import report

    raise SystemExit(report(rows()))
