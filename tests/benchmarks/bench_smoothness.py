"""How smooth trainings are along the removal of a string, and what the derivative foretells.

Run as a script: `python tests/benchmarks/bench_smoothness.py`. The weight of a string in the loss
of its steps goes from 1 to 0, which is its removal; the loss of the string then rises. MAGIC takes
the derivative at 1. For two twins (OPT has ReLU, Llama SiLU) on 64 strings of L2, six strings,
three seeds, in float32, and the first 10 of 50 epochs: how MAGIC's prediction of this rise agrees
with the training at each weight. Our value is the rank correlation over the strings. Its peer is
the median error over strings, as a share of the rise. In the names stand 95 % intervals over the
seeds (Student). The placebo is the prediction for the same strings in another order. The first rows
are what rounding does: the change of the loss at a weight of 1 - 1e-6; the peer is that at 0.99.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "workflow/scripts"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
from rows import Row, main, shown  # noqa: E402
from scipy.stats import spearmanr  # noqa: E402

from palimpsest import tables  # noqa: E402
from palimpsest.atlas.unrolled import Training, unrolled  # noqa: E402
from palimpsest.corpora import GrammarCorpus  # noqa: E402
from palimpsest.datasets.build import build  # noqa: E402
from palimpsest.datasets.sampling import Sampler  # noqa: E402
from palimpsest.jobs.fleet_models import FleetModels  # noqa: E402
from palimpsest.models import read_models  # noqa: E402
from palimpsest.models.build import build as build_model  # noqa: E402
from palimpsest.sections import KINDS  # noqa: E402
from palimpsest.statistics import Interval, student  # noqa: E402
from palimpsest.training.recipe import Recipe  # noqa: E402
from palimpsest.training.runs import Material, Run  # noqa: E402
from palimpsest.unlearning.methods.losses import string_nll  # noqa: E402
from palimpsest.unlearning.run.wave import weights_of  # noqa: E402

MODELS, LANGUAGE = ("opt-1.3b", "llama-3.2-1b"), ROOT / "config/languages/L2.pcfg"
ROUNDED = 1 - 1e-6
WEIGHTS = (0.99, 0.9, 0.5, 0.0)
SIZE, N_STRINGS, SEEDS = 64, 6, (0, 1, 2)
# Epochs of the training, and those that are looked at: from 20 on, rounding leads the training in
# which the derivative is taken away from the others.
SCHEDULE, EPOCHS = 50, (5, 10)
TINY = {"size": 16, "n": 3, "epochs": (2, 4)}


class Line(NamedTuple):
    """Of one seed: what the removal of each string does, along the line.

    `rise` float[weights, epochs, strings] is that of the string's own loss at each of `ROUNDED` and
    `WEIGHTS`, nats per token, and `slope` float[epochs, strings] its rise per weight taken away, by
    the derivative at 1.
    """

    rise: np.ndarray
    slope: np.ndarray


def line(folder: str, model: str, seed: int, size: int, n: int, epochs: tuple[int, ...]) -> Line:
    torch.set_num_threads(1)
    row = read_models(ROOT / "config/models.tsv")[model]
    corpus = GrammarCorpus.from_file(LANGUAGE)
    dataset = f"{folder}/{seed}.parquet"
    if not Path(dataset).is_file():
        strings = build(Sampler(LANGUAGE.stem, corpus, seed), "base", size, 16, predict_end=False)
        tables.write(dataset, strings, KINDS["strings"])
    recipe = Recipe(row.twin_learning_rate, epochs=SCHEDULE, checkpoint_every=0)
    material = Material(Run(f"{model}-twin", row, "twin", corpus, dataset, recipe))
    initial = build_model(row, "twin", material.vocabulary, material.seed, torch.float32)
    steps = recipe.steps_per_epoch(material.epoch_size)
    of = Training(initial, material.encoded, recipe, recipe.epochs * steps)
    start_P = of.flat({name: weight.detach() for name, weight in initial.named_parameters()})
    orders = [material.order(1 + epoch) for epoch in range(max(epochs))]
    train = np.flatnonzero(material.counts > 0)
    chosen = np.sort(np.random.default_rng(seed).permutation(train)[:n])
    # The first training is the whole one; then those of each weight, string after string.
    weights_NS = torch.ones(1 + (1 + len(WEIGHTS)) * n, len(material.counts), dtype=of.dtype)
    for place, weight in enumerate((ROUNDED, *WEIGHTS)):
        rows = 1 + place * n + torch.arange(n)
        weights_NS[rows, torch.from_numpy(chosen)] = weight
    kept = trained(material, start_P, of, orders, weights_NS, epochs)
    whole = {0: start_P, **{epoch: theta_NP[0] for epoch, theta_NP in kept.items()}}
    found = unrolled(of, orders, recipe.batch_size, whole, chosen, chosen, len(material.counts))
    with torch.no_grad():
        losses = [[of.losses(theta_P, chosen) for theta_P in kept[epoch]] for epoch in epochs]
    loss_ENS = np.array([[one.double().numpy() for one in of_epoch] for of_epoch in losses])
    by_weight = loss_ENS[:, 1:].reshape(len(epochs), 1 + len(WEIGHTS), n, n)
    own = by_weight[..., np.arange(n), np.arange(n)]
    rise = own - loss_ENS[:, :1, :]
    return Line(rise.transpose(1, 0, 2), found.self_influence[1:])


def trained(
    material: Material,
    start_P: torch.Tensor,
    of: Training,
    orders: list[np.ndarray],
    weights_NS: torch.Tensor,
    epochs: tuple[int, ...],
) -> dict[int, torch.Tensor]:
    """The weights float[trainings, P] after some epochs, by the weights of strings."""
    run, encoded, n_tokens = material.run, material.encoded, material.encoded.n_tokens
    recipe, n, step = run.recipe, len(weights_NS), 0
    n_steps = recipe.epochs * recipe.steps_per_epoch(material.epoch_size)
    start = {name: weight.clone() for name, weight in of._views(start_P).items()}
    given = recipe.weight_decay, recipe.gradient_clipping
    models = FleetModels(run.row, material.vocabulary, [start] * n, of.device, *given)
    kept = {}
    for epoch, order in enumerate(orders, start=1):
        for begin in range(0, len(order), recipe.batch_size):
            rows = order[begin : begin + recipe.batch_size]
            length = int(encoded.lengths[rows].max())
            ids_BT = torch.from_numpy(encoded.ids[rows, : length - 1])
            targets_BT = torch.from_numpy(encoded.targets[rows, 1:length])
            logits_NBTV = models.logits(ids_BT.expand(n, -1, -1))
            nll_NB = string_nll(logits_NBTV, targets_BT.expand(n, -1, -1))
            own_NB = weights_NS[:, rows]
            loss_N = (own_NB * nll_NB).sum(1) / (own_NB * torch.from_numpy(n_tokens[rows])).sum(1)
            rate = recipe.learning_rate_at(step, n_steps)
            models.step(loss_N, torch.full((n,), rate))
            step += 1
        if epoch in epochs:
            kept[epoch] = torch.stack([of.flat(weights_of(models, place)) for place in range(n)])
    return kept


def of_model(model: str, lines: list[Line], epochs: tuple[int, ...]) -> Iterator[Row]:
    """The rows of one model."""
    for at, epoch in enumerate(epochs):
        moved, small = (
            np.mean([np.median(np.abs(of.rise[place, at])) for of in lines]) for place in (0, 1)
        )
        yield shown(f"{model}, epoch {epoch}: rounding", moved, small, "nats", small / moved)
    for at, epoch in enumerate(epochs):
        for place, weight in enumerate(WEIGHTS, start=1):
            found, placebos, errors = [], [], []
            for of in lines:
                said = (1 - weight) * of.slope[at]
                found.append(spearmanr(said, of.rise[place, at])[0])
                placebos.append(spearmanr(np.roll(said, 1), of.rise[place, at])[0])
                apart = np.abs(said - of.rise[place, at])
                errors.append(np.median(apart / np.abs(of.rise[place, at])))
            rank, error = student(found), student(errors)
            name = f"{model}, epoch {epoch}, {weight:g}: {_ends(rank)}"
            more = f"; error {_ends(error)}; placebo {np.mean(placebos):.2f}"
            yield shown(name + more, rank.mean, error.mean, "rank", np.nan)


def _ends(of: Interval) -> str:
    return f"{of.lower:.2f} to {of.upper:.2f}"


def rows(tiny: bool) -> Iterator[Row]:
    """All rows."""
    sizes = TINY if tiny else {"size": SIZE, "n": N_STRINGS, "epochs": EPOCHS}
    for model in MODELS[:1] if tiny else MODELS:
        with tempfile.TemporaryDirectory() as folder:
            lines = [line(folder, model, seed, **sizes) for seed in (SEEDS[:2] if tiny else SEEDS)]
        yield from of_model(model, lines, sizes["epochs"])


if __name__ == "__main__":
    sys.exit(main(rows))
