"""A program that trains a small full model with an adapter, and writes what is found as arrays.

    python adapter_training.py FOLDER STAGE PRECISION

FOLDER holds the model that `write_checkpoint` saves, its table, and the dataset.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from palimpsest import tables
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build as build_dataset
from palimpsest.datasets.sampling import Sampler
from palimpsest.models import read_models
from palimpsest.models.adapters import plain_name
from palimpsest.models.build import build
from palimpsest.sections import KINDS
from palimpsest.training.deepspeed_engine import DeepSpeedEngine
from palimpsest.training.recipe import Recipe
from palimpsest.training.runs import Material, Run

ROOT = Path(__file__).parents[2]
GRAMMAR = ROOT / "config/languages/L2.pcfg"
RECIPE = Recipe(
    3e-4,
    epochs=2,
    batch_size=6,
    micro_batch_size=6,
    evaluation_batch_size=5,
    checkpoint_every=1,
    adapter="lora",
    adapter_rank=4,
    adapter_alpha=8,
    adapter_rate=10,
)
DRAWS = np.arange(2, 11).reshape(1, 9)  # a string of tokens


class Killed(Exception):
    """Ends a run after its first epoch."""


def write_dataset(folder: Path) -> None:
    """16 strings for training and four for tests."""
    strings = build_dataset(
        Sampler("L2", GrammarCorpus.from_file(GRAMMAR), 0), "base", 16, 4, predict_end=False
    )
    tables.write(folder / "strings.parquet", strings, KINDS["strings"])


def run_in(folder: Path, **changes) -> Run:
    row = read_models(folder / "mine.tsv")["mine"]
    recipe = replace(RECIPE, **changes)
    grammar = GrammarCorpus.from_file(GRAMMAR)
    return Run("mine", row, "full", grammar, str(folder / "strings.parquet"), recipe)


def base_weights(run: Run) -> dict[str, torch.Tensor]:
    """The weights of the folder, before any training."""
    return dict(build(run.row, "full", 0, 0, torch.float32).named_parameters())


def logits_of(model) -> np.ndarray:
    model.eval()
    with torch.no_grad():
        return model(input_ids=torch.from_numpy(DRAWS)).logits.float().numpy()


def killed_after_the_first(name: str):
    """A reporter that kills the run after its first epoch."""

    def report(*_) -> None:
        raise Killed

    return report


def unseen(name: str):
    """A reporter that reports nothing."""
    return lambda *_: None


def main(folder: Path, stage: int, precision: str) -> None:
    torch.set_num_threads(1)
    run = run_in(folder, zero_stage=stage, precision=precision)
    own = folder / f"{stage}-{precision}"
    engine = DeepSpeedEngine(run.recipe, own / "whole", save_weights=True)
    engine.train([run], unseen)
    left = {"nll": nll_in(engine.state(run))}
    # The same run, killed after its first checkpoint, and taken up again.
    engine.state_folder = own / "killed"
    try:
        engine.train([run], killed_after_the_first)
    except Killed:
        engine.accelerator.free_memory()
    state = engine.state(run)
    (checkpoint,) = state.checkpoints()
    (file,) = checkpoint.rglob("*model_states.pt")
    saved = torch.load(file, weights_only=False)
    left["saved"] = [*saved["module"], *(saved["frozen_param_fragments"] or ())]
    engine.train([run], unseen)
    left["resumed"] = nll_in(state)
    if stage < 3:  # with ZeRO 3, a process has only parts of weights
        left |= look(engine, run, own / "third")
    np.savez(own / "found.npz", **left)
    engine.close()


def nll_in(state) -> np.ndarray:
    """Nats [epochs + 1, strings] in the trace of a finished run."""
    trace = tables.read(state.trace, KINDS["trace"])
    return trace["nll"].to_numpy().reshape(RECIPE.epochs + 1, -1)


def look(engine, run: Run, folder: Path) -> dict[str, np.ndarray]:
    """The model at the end of a training: its logits, and which frozen weights have changed."""
    engine.state_folder = folder
    training = engine._ready(run, Material(run), engine.state(run))
    for epoch in (1, 2):
        training._train_epoch(epoch)
    module, before = training.model.module, base_weights(run)
    frozen = {n: p for n, p in module.named_parameters() if not p.requires_grad}
    moved = [n for n, p in frozen.items() if not torch.equal(p, before[plain_name(n)].to(p.dtype))]
    return {"logits": logits_of(module), "frozen": list(map(plain_name, frozen)), "moved": moved}


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
