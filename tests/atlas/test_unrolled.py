"""The exact derivative of a training, against trainings with other weights of strings."""

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from helpers.commands import MODELS, ROOT
from helpers.families import FAMILIES
from helpers.string_gradients import strings, twin, weights_of
from palimpsest import tables
from palimpsest.atlas.attribution import Trained
from palimpsest.atlas.unrolled import Training, unrolled
from palimpsest.corpora import read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.kinds import STRINGS
from palimpsest.datasets.sampling import Sampler
from palimpsest.errors import UserError
from palimpsest.jobs.bench import Bench, TrainedWeights, holder_of
from palimpsest.jobs.command import Assignment
from palimpsest.jobs.finetune import Job, finetune
from palimpsest.training.kept_weights import weights_by_epoch
from palimpsest.training.recipe import Recipe

# Copies: string 0 twice, strings 2 and 5 never
EPOCH = np.array([0, 1, 3, 4, 0])
TRAIN, MEASURED = np.array([0, 1, 3, 4]), np.array([0, 1, 3, 4, 5])
ORDERS = [EPOCH, np.flip(EPOCH).copy(), EPOCH[[2, 0, 4, 1, 3]]]
BATCH, N = 2, 6
STEPS = 3 * len(ORDERS)
ALMOST_NONE = 1e-9  # a weight; a step of which nothing is left has no loss
RECIPE = Recipe(1e-2, epochs=3, batch_size=BATCH, weight_decay=0.1, gradient_clipping=0.5)


def training(family: str = "opt-1.3b", recipe: Recipe = RECIPE) -> Training:
    model = twin(family, seed=1, twin_hidden=8, twin_layers=1).double()
    return Training(model, strings(), recipe, STEPS)


def trained(of: Training, weights_S: torch.Tensor) -> list[torch.Tensor]:
    """The weights after each epoch, from 0, if strings have these weights in every step."""
    theta = of.flat(weights_of(of._model))
    state, number, found = (theta, torch.zeros_like(theta), torch.zeros_like(theta)), 0, [theta]
    for order in ORDERS:
        for begin in range(0, len(order), BATCH):
            state = of.step(order[begin : begin + BATCH], number)(*state, weights_S)
            number += 1
        found.append(state[0].detach())
    return found


def scores(of: Training, epochs=(0, 1, 2, 3)):
    weights = trained(of, torch.ones(N, dtype=torch.float64))
    kept = {epoch: weights[epoch] for epoch in epochs}
    return unrolled(of, ORDERS, BATCH, kept, TRAIN, MEASURED, N)


def weighed(row: int, weight: float) -> torch.Tensor:
    weights = torch.ones(N, dtype=torch.float64)
    weights[row] = weight
    return weights


@pytest.mark.parametrize("family", FAMILIES)
def test_the_derivative_is_that_of_trainings_with_slightly_other_weights(family):
    """Differences of four points, at every epoch; clipping, decay and the moments take part.

    Parts of the models compute in float32, so that differences of nearer points are not exact.
    """
    of, apart = training(family), 4e-3
    found = scores(of)
    for place, row in enumerate(TRAIN):
        by_weight = {
            factor: trained(of, weighed(row, 1 + factor * apart)) for factor in (-2, -1, 1, 2)
        }
        for epoch in range(4):
            at = {key: of.losses(kept[epoch], MEASURED) for key, kept in by_weight.items()}
            slope = (8 * (at[1] - at[-1]) - (at[2] - at[-2])) / (12 * apart)
            exact = -slope.detach().numpy()
            assert found.self_influence[epoch, place] == pytest.approx(exact[place], abs=1e-4)
        np.testing.assert_allclose(found.influence[place], exact, atol=1e-4)


def test_a_string_without_training_has_no_influence_on_itself():
    found = scores(training())
    assert (found.self_influence[:, -1] == 0).all()
    assert (found.self_influence[0] == 0).all()
    assert (found.influence[:, -1] != 0).all()


def test_a_slow_training_ranks_removals_as_the_derivative_does():
    """A fast one does not: there, a removal is far from a small change."""
    correlations, ones = {}, torch.ones(N, dtype=torch.float64)
    for rate in (1e-6, 1e-1):
        of = training(recipe=Recipe(rate, epochs=3, batch_size=BATCH))
        found = scores(of)
        whole = of.losses(trained(of, ones)[-1], MEASURED)
        without = [trained(of, weighed(row, ALMOST_NONE))[-1] for row in TRAIN]
        removed = [of.losses(weights, MEASURED) - whole for weights in without]
        exact = torch.stack(removed).detach().numpy()
        correlations[rate] = np.corrcoef(found.influence.ravel(), exact.ravel())[0, 1]
    assert correlations[1e-6] > 0.95 > correlations[1e-1]


def test_a_drift_by_rounding_is_said():
    of = training()
    kept = dict(enumerate(trained(of, torch.ones(N, dtype=torch.float64))))
    kept[3] = kept[3] + 0.05 * (kept[3] - kept[0])
    with pytest.warns(UserWarning, match=r"after epoch 3, rounding has led .* 4\.8% of the way"):
        unrolled(of, ORDERS, BATCH, kept, TRAIN, MEASURED, N)


def test_another_training_is_refused():
    of = training()
    kept = dict(enumerate(trained(of, weighed(0, ALMOST_NONE))))
    with pytest.raises(UserError, match=r"after epoch 1, the unrolled training is \d+% of the way"):
        unrolled(of, ORDERS, BATCH, kept, TRAIN, MEASURED, N)


OF_FLEET = Recipe(
    3e-3, epochs=2, batch_size=4, weight_decay=0.1, gradient_clipping=0.5, checkpoint_every=0
)


@pytest.fixture(scope="module", params=["opt-125m-twin", "llama-3.2-1b-twin", "gemma-3-270m-twin"])
def by_fleet(request, tmp_path_factory):
    """A training by the fleet, on strings of several lengths, with copies: its weights by epoch."""
    folder = tmp_path_factory.mktemp("fleet")
    language = ROOT / "config/languages/L5.pcfg"
    made = build(Sampler("L5", read_corpus(language), 0), "base", 10, 4, False)
    made["count"] = np.where(made["count"] > 0, np.arange(len(made)) % 2 + 1, 0)
    tables.write(folder / "strings.parquet", made, STRINGS)
    asked = Assignment(
        request.param, str(MODELS), str(language), OF_FLEET, "fleet", str(folder / "state")
    )
    names = ("strings.parquet", "trace.parquet", "manifest.json")
    job = Job(*(str(folder / name) for name in names), checkpoints=str(folder / "weights"))
    finetune(asked, [job])
    files = weights_by_epoch(job.checkpoints)
    bench = Bench(asked.run(job.dataset), holder_of(asked))
    weights = TrainedWeights([str(path) for path in files.values()])
    return Trained(bench, weights, list(files), unseen=0), [load_file(of) for of in files.values()]


def apart_after(by_fleet, recipe: Recipe) -> list[float]:
    """How far the unrolled steps are from the fleet's weights, over their way, by epoch."""
    trained, kept = copy(by_fleet[0]), by_fleet[1]
    trained.recipe = recipe
    of = trained.training()
    start, *ends = map(of.flat, kept)
    state, number, found = (start, torch.zeros_like(start), torch.zeros_like(start)), 0, []
    ones = torch.ones(len(trained.weighing.copies))
    for order, end in zip(trained.orders(), ends, strict=True):
        for begin in range(0, len(order), recipe.batch_size):
            step = of.step(order[begin : begin + recipe.batch_size], number)
            state, number = tuple(part.detach() for part in step(*state, ones)), number + 1
        found.append(float((state[0] - end).norm() / (end - start).norm()))
    return found


def test_the_steps_are_those_of_the_fleet(by_fleet):
    assert max(apart_after(by_fleet, OF_FLEET)) < 1e-4


@pytest.mark.parametrize(
    "broken", [{"weight_decay": 0.0}, {"gradient_clipping": 1e9}, {"warmup_ratio": 0.3}]
)
def test_other_steps_are_told_from_those_of_the_fleet(by_fleet, broken):
    assert min(apart_after(by_fleet, replace(OF_FLEET, **broken))) > 1e-3
