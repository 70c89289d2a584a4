"""A program that unlearns with adapters, and writes what is found as arrays.

    python adapter_unlearning.py DATASET PATH STAGE PRECISION

The model is a small one that is built on the spot; adapters work on any size.
"""

import sys
from dataclasses import replace

import numpy as np
import torch

from helpers.unlearning_engine import (
    SEED,
    first_loss,
    largest,
    methods,
    run_of,
    start_of,
    whole,
)
from palimpsest.errors import UserError
from palimpsest.jobs.deepspeed_models import DeepSpeedHolder
from palimpsest.launch import collect_rarely
from palimpsest.models.adapters import plain_name
from palimpsest.models.build import build
from palimpsest.unlearning.methods import Method
from palimpsest.unlearning.methods.task import Task
from palimpsest.unlearning.run.unlearn import Workbench

ADAPTED = {"adapter": "lora", "adapter_rank": 4, "adapter_alpha": 8.0, "adapter_rate": 10.0}
BUDGET = 8  # passes of a method
LEARNED = ("finetune", "seif-finetune", "sgd-adamw")


def named_weights(models, frozen: bool) -> dict[str, np.ndarray]:
    """The module's own parameters: those that are frozen, or those of the adapter."""
    return {
        plain_name(name): parameter.detach().float().cpu().numpy().copy()
        for name, parameter in models._module.named_parameters()
        if parameter.requires_grad != frozen
    }


def measured(workbench, models) -> np.ndarray:
    return workbench.measure(models)[0, 0]


def apply(workbench, start, method: Method) -> dict[str, np.ndarray]:
    """What a method changes, and what the merged weights predict on their own."""
    models = workbench.holder.open([start])
    frozen = named_weights(models, frozen=True)
    before = whole(models)
    recipe = workbench.run.recipe
    rates = recipe.peak_rate, recipe.batch_size
    task = Task(models, workbench.material.encoded, workbench.rows, *rates, [SEED], BUDGET)
    task.run(method.phases)
    nll, merged = measured(workbench, models), whole(models)
    left = {
        "nll": nll,
        "moved": [n for n in merged if not np.array_equal(merged[n], before[n])],
        "thawed": [
            n for n, w in named_weights(models, frozen=True).items() if (w != frozen[n]).any()
        ],
    }
    again = workbench.holder.open([{n: torch.from_numpy(w) for n, w in merged.items()}])
    return {f"{method.name}/{key}": value for key, value in left.items()} | {
        f"{method.name}/merged": measured(workbench, again)
    }


def edit(workbench, start) -> dict[str, np.ndarray]:
    """An edit of every weight after some steps; the next step takes it up."""
    models = workbench.holder.open([start])
    for _ in range(3):
        models.step(first_loss(workbench, models), torch.full((1,), 1e-2))
    before = whole(models)
    with models.weights() as weights:
        for tensor in weights.values():
            tensor.mul_(2)
    after = whole(models)
    run = workbench.run
    plain = build(run.row, run.scale, workbench.material.vocabulary, 7, torch.float32)
    plain.load_state_dict({name: torch.from_numpy(w) for name, w in after.items()}, strict=False)
    ids = torch.arange(2, 8).reshape(1, 6)
    with torch.no_grad():
        ours, theirs = models.logits(ids.unsqueeze(0))[0], plain(input_ids=ids).logits
    models.step(first_loss(workbench, models), torch.full((1,), 1e-2))
    return {
        "edit/error": largest({n: 2 * w for n, w in before.items()}, after),
        "edit/logits": (ours - theirs).abs().max().item() / theirs.abs().max().item(),
        "edit/step": largest(after, whole(models)),
    }


def main(dataset: str, path: str, stage: str, precision: str) -> None:
    collect_rarely()
    torch.set_num_threads(1)
    run = run_of(dataset, int(stage), precision)
    run = replace(run, recipe=replace(run.recipe, **ADAPTED))
    workbench = Workbench(run, DeepSpeedHolder)
    start = start_of(workbench)
    models = workbench.holder.open([start])
    opened = whole(models)
    left = {
        "opened": largest({name: weight.numpy() for name, weight in start.items()}, opened),
        "nll": measured(workbench, models),
        "n_tokens": workbench.material.encoded.n_tokens,
        "adapters": [len(named_weights(models, frozen=False))],
    }
    try:
        models.gradients(first_loss(workbench, models))
    except UserError as error:
        left["said"] = str(error)
    # Adapters of two models differ, and an adapter is the same whenever its model is opened.
    draws = [named_weights(workbench.holder.open([one]), frozen=False) for one in (start, start)]
    other = {name: weight + 1 for name, weight in start.items()}
    draws.append(named_weights(workbench.holder.open([other]), frozen=False))
    left["drawn_again"], left["drawn_for_another"] = (largest(draws[0], d) for d in draws[1:])
    table = methods()
    for name in LEARNED:
        left |= apply(workbench, start, table[name])
    left["again"] = apply(workbench, start, table["finetune"])["finetune/nll"]
    np.savez(path, **left, **edit(workbench, start))
    workbench.holder.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
