"""A program that applies methods to a twin with one engine, and writes the results as arrays."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from palimpsest import tables
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import UserError
from palimpsest.jobs.bench import holder_of
from palimpsest.jobs.command import Assignment
from palimpsest.launch import collect_rarely
from palimpsest.models import read_models, resolve
from palimpsest.models.build import build
from palimpsest.models.trained import OPTIMIZERS
from palimpsest.sections import KINDS
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Run
from palimpsest.unlearning.forgetting_data import build_forgetting
from palimpsest.unlearning.methods import Method, read_methods
from palimpsest.unlearning.methods.losses import cross_entropy
from palimpsest.unlearning.methods.task import Task
from palimpsest.unlearning.run.unlearn import Workbench

ROOT = Path(__file__).parents[2]
GRAMMAR = ROOT / "config/languages/L2.pcfg"
MODELS = ROOT / "config/models.tsv"
METHODS = ROOT / "config/unlearning.yaml"
RECIPE = Recipe(3e-3, batch_size=6, weight_decay=0.1, checkpoint_every=0)
MODEL = "pythia-1b-twin"
SEED = (0, 0, 0)
BUDGET = 24  # passes of a method
# Two optimisers of one kind or of two, each in turn in two rounds.
ROUNDS = {
    "sgd": {"optimizer": "sgd", "rate": 5.0},
    "adamw": {"optimizer": "adamw", "rate": 0.3},
}
OWN = {
    f"{first}-{second}": [
        {
            "repeat": 2,
            "phases": [
                {"erase": "gradient-ascent", "share": 0.13, **ROUNDS[first]},
                {"repair": "finetune", "share": 0.2, **ROUNDS[second]},
            ],
        }
    ]
    for first, second in (("sgd", "sgd"), ("sgd", "adamw"), ("adamw", "adamw"))
}
BELOW_BF16 = 2.0**-12  # of a weight: too little for bf16 to hold


def write_dataset(folder: Path) -> None:
    """A small training set with a forget set, in both variants."""
    sampler = Sampler("L2", GrammarCorpus.from_file(GRAMMAR), 0)
    for variant, frame in build_forgetting(sampler, 24, 8, 6, False, "string", 0.25).items():
        tables.write(folder / variant / "strings.parquet", frame, KINDS["strings"])


def run_of(dataset: str, stage: int, precision: str, offload: str = "none") -> Run:
    row, scale = resolve(MODEL, read_models(MODELS))
    how = {"zero_stage": stage, "precision": precision, "offload_optimizer": offload}
    return Run(MODEL, row, scale, GrammarCorpus.from_file(GRAMMAR), dataset, replace(RECIPE, **how))


def start_of(workbench: Workbench) -> dict[str, torch.Tensor]:
    """The weights with which every engine begins; they are exact in bf16."""
    run = workbench.run
    model = build(run.row, run.scale, workbench.material.vocabulary, 7, torch.float32)
    return {n: p.detach().bfloat16().float() for n, p in model.named_parameters()}


def whole(models) -> dict[str, np.ndarray]:
    with models.weights() as weights:
        return {name: tensor[0].cpu().numpy().copy() for name, tensor in weights.items()}


def task_on(workbench, models, seed) -> Task:
    """The task of one model."""
    rate, batch_size = workbench.run.recipe.learning_rate, workbench.run.recipe.batch_size
    return Task(
        models, workbench.material.encoded, workbench.rows, rate, batch_size, [seed], BUDGET
    )


def methods() -> dict[str, Method]:
    """The methods of the table, and those of `OWN`."""
    own = {name: Method.of(name, phases) for name, phases in OWN.items()}
    return read_methods(METHODS) | own


def first_loss(workbench, models):
    batch = next(task_on(workbench, models, (0,)).batches("retain", 1, 1))
    return cross_entropy(models.logits(batch.ids_MBT), batch.targets_MBT)


def edit_then_step(workbench, start) -> dict[str, np.ndarray]:
    """Whether edits of the weights survive a later step.

    The step has learning rate 0 and copies the optimiser's weights into the module. One edit
    changes every weight by less than bf16 can hold, the other changes the loss.
    """
    models = workbench.holder.open([start])
    models.step(first_loss(workbench, models), torch.full((1,), 1e-3))
    before = whole(models)
    with models.weights() as weights:
        for tensor in weights.values():
            tensor.mul_(1 + BELOW_BF16)
    models.step(first_loss(workbench, models), torch.zeros(1))
    after = whole(models)
    wanted = {name: np.float32(1 + BELOW_BF16) * tensor for name, tensor in before.items()}
    with models.weights() as weights:
        for tensor in weights.values():
            tensor.mul_(2)
    losses = [first_loss(workbench, models).item()]
    models.step(first_loss(workbench, models), torch.zeros(1))
    losses.append(first_loss(workbench, models).item())
    return {
        "edit/size": largest(wanted, before),
        "edit/error": largest(wanted, after),
        "edit/losses": np.array(losses),
    }


def largest(ours, theirs, names=None) -> float:
    """Largest difference of the weights with some names, or of all."""
    return max(np.abs(ours[name] - theirs[name]).max() for name in names or ours)


def frozen(workbench, start) -> dict[str, np.ndarray]:
    """How far selected weights moved, and how far other weights, which must not move, did."""
    models = workbench.holder.open([start])
    task = task_on(workbench, models, SEED)
    before = whole(models)
    task.run(read_methods(METHODS)["rmu"].phases)
    after = whole(models)
    selected = {name for name, chosen in task.selected.items() if chosen.any()}
    return {
        "frozen/selected": largest(before, after, selected),
        "frozen/others": largest(before, after, after.keys() - selected),
    }


def said_of_nan(workbench, start, optimizer) -> str:
    """The message about a step whose gradient is not a number, if there is one."""
    models = workbench.holder.open([start])
    models.fresh_optimizer(optimizer)
    try:
        models.step(first_loss(workbench, models) * float("nan"), torch.full((1,), 1e-3))
    except UserError as error:
        return str(error)
    return "" if np.isfinite(workbench.measure(models)).all() else "nan"


def forget(workbench, start, method) -> dict[str, np.ndarray]:
    """How well every string is predicted after a method, and the cost of the method."""
    models = workbench.holder.open([start])
    task = task_on(workbench, models, SEED)
    task.run(methods()[method].phases)
    return {f"nll/{method}": workbench.measure(models)[0, 0], f"steps/{method}": task.steps}


def look(workbench, start) -> dict[str, np.ndarray]:
    """The queries of phases to models, without steps; they do not change the models."""
    models = workbench.holder.open([start])
    left = {"nll/start": workbench.measure(models)[0, 0]}
    gradients = models.gradients(first_loss(workbench, models))
    left |= {f"gradient/{name}": tensor[0].cpu().numpy() for name, tensor in gradients.items()}
    ids_MBT = torch.arange(2, 8).reshape(1, 2, 3).to(models.device)
    for layer in range(len(models.layers()) - 1):
        left[f"hidden/{layer}"] = models.hidden(ids_MBT, layer).detach().cpu().numpy()
    sites = models.sites()
    for site, values in zip(sites, models.activations(ids_MBT, sites), strict=True):
        left[f"site/{site}"] = values.cpu().numpy()
    initial = models.initial([3]).values()
    left["initial"] = np.concatenate([tensor.flatten().cpu().numpy() for tensor in initial])
    return {**left, "nll/after": workbench.measure(models)[0, 0]}


def main(dataset, path, name, stage, precision, offload, *methods: str) -> None:
    collect_rarely()
    torch.set_num_threads(1)
    run = run_of(dataset, int(stage), precision, offload)
    assignment = Assignment(MODEL, str(MODELS), str(GRAMMAR), run.recipe, name, "", memory=2**30)
    workbench = Workbench(run, holder_of(assignment))
    given = workbench, start_of(workbench)
    left = {"n_tokens": workbench.material.encoded.n_tokens, **look(*given)}
    for method in methods:
        left |= forget(*given, method)
    left |= {**edit_then_step(*given), **frozen(*given)}
    left |= {f"nan/{optimizer}": said_of_nan(*given, optimizer) for optimizer in OPTIMIZERS}
    np.savez(path, **left)
    workbench.holder.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
