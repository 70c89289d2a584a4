"""A small problem of unlearning, with twins that are really trained on the CPU."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file

from palimpsest import tables
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.sampling import Sampler
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.finetune import Job, finetune
from palimpsest.regimes import Replicates
from palimpsest.sections import KINDS
from palimpsest.training.recipe import Recipe
from palimpsest.unlearning.forgetting_data import build_forgetting

ROOT = Path(__file__).parents[2]
GRAMMAR = str(ROOT / "config/languages/L3.pcfg")
MODELS = str(ROOT / "config/models.tsv")
MODEL = "pythia-1b-twin"
RECIPE = Recipe(3e-3, epochs=2, batch_size=4, checkpoint_every=0)
VARIANTS = ("original", "retain")


def assignment(state, recipe=RECIPE, **more):
    """The assignment with which the twins are trained and unlearn."""
    return Assignment(MODEL, MODELS, GRAMMAR, recipe, "fleet", str(state), **more)


@dataclass
class Trained:
    """The files of a problem's originals and retrained models."""

    folder: Path
    datasets: dict

    def path(self, variant, name):
        return str(self.folder / variant / name)

    def train(self, draws, recipe=RECIPE):
        jobs = [
            Job(
                self.datasets[variant],
                self.path(variant, "trace.parquet"),
                self.path(variant, "manifest.json"),
                self.path(variant, "weights.safetensors"),
                regime=Replicates(draws),
            )
            for variant in VARIANTS
        ]
        finetune(self.assignment(recipe), jobs)
        return self

    def assignment(self, recipe):
        return assignment(self.folder / "state", recipe)

    @property
    def weights(self):
        return [self.path(variant, "weights.safetensors") for variant in VARIANTS]

    def trace(self, variant, draw, epoch=None):
        """What a model predicts, at one epoch or all of them."""
        frame = tables.read(self.path(variant, "trace.parquet"), KINDS["trace"])
        chosen = frame["variant"] == f"{variant}-{draw}"
        if epoch is not None:
            chosen &= frame["epoch"] == epoch
        return frame[chosen].reset_index(drop=True)

    def vector(self, variant, draw):
        """All weights of a model, as one vector."""
        held = load_file(self.path(variant, "weights.safetensors"))
        start = f"{variant}-{draw}/"
        chosen = [held[name] for name in sorted(held) if name.startswith(start)]
        return np.concatenate([values.ravel() for values in chosen]).astype(float)


def trained_twins(folder, draws):
    """Twelve strings, three of them to be forgotten; some models of each variant."""
    sampler = Sampler("L3", GrammarCorpus.from_file(GRAMMAR), 0)
    datasets = {}
    for variant, frame in build_forgetting(sampler, 12, 8, 4, False, "string", 0.25).items():
        datasets[variant] = str(folder / variant / "strings.parquet")
        tables.write(datasets[variant], frame, KINDS["strings"])
    return Trained(folder, datasets).train(range(draws))
