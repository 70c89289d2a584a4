"""Gradients of single strings, and TracIn by their products."""

import itertools

import numpy as np
import pytest
import torch

from helpers.families import FAMILIES
from helpers.string_gradients import (
    COPIES,
    by_autograd,
    flat_gradients,
    strings,
    summed_nll,
    twin,
    weighing,
    weights_of,
)
from palimpsest.atlas.gradients import (
    ADAMW,
    COSINE,
    PLAIN,
    SecondMoments,
    rates_between,
    tracin,
)
from palimpsest.atlas.string_gradients import StringGradients
from palimpsest.errors import UserError
from palimpsest.training.fleet import operations, stack
from palimpsest.training.recipe import ADAM_BETAS, ADAM_EPS, Recipe
from palimpsest.training.recipe import COSINE as COSINE_SCHEDULE

CPU = torch.device("cpu")
CLOSE = 1e-4  # of the norm
ROWS = np.arange(len(COPIES))


def of_strings(family: str = "opt-1.3b", at_once: int | None = None) -> StringGradients:
    return StringGradients(twin(family, seed=9), strings(), CPU, at_once)


# Gradients


@pytest.mark.parametrize("family", FAMILIES)
def test_gradients_are_those_of_autograd(family):
    """One string at a time and without padding; also at weights that are loaded later."""
    encoded, gradients = strings(), of_strings(family, at_once=4)
    for seed in (1, 2, 3):
        model = twin(family, seed)
        gradients.load(weights_of(model))
        for row, found_P in zip(ROWS, gradients.of(ROWS), strict=True):
            exact = by_autograd(model, encoded, row)
            scale = torch.cat([g.flatten() for g in exact.values()]).norm()
            parts = found_P.split([shape.numel() for shape in gradients.shapes.values()])
            for (name, shape), part in zip(gradients.shapes.items(), parts, strict=True):
                kept, cut = exact[name][: shape[0]], exact[name][shape[0] :]
                assert (part.view(shape) - kept).norm() < CLOSE * scale, name
                assert not cut.any(), name


def test_the_operations_of_a_gpu_give_the_same(monkeypatch):
    """Those in plain PyTorch; they make no programs."""
    weights, found = weights_of(twin(seed=1)), []
    for _ in range(2):
        gradients = of_strings(at_once=4)
        gradients.load(weights)
        found.append(gradients.of(ROWS))
        monkeypatch.setattr(stack, "operations_for", lambda device: operations)
    assert found[0].any()
    torch.testing.assert_close(*found, rtol=0, atol=1e-4)


def test_a_table_of_positions_is_cut_to_the_strings():
    """OPT's table begins with two rows that are no position."""
    shapes = of_strings().shapes
    assert shapes["model.decoder.embed_positions.weight"][0] == 2 + max(strings().lengths)
    assert not [name for name in of_strings("llama-3.1-8b").shapes if "position" in name]


def test_the_order_and_the_batches_of_strings_do_not_matter():
    model, order = twin(seed=1), np.array([4, 0, 5, 1])
    found = []
    for at_once in (1, 2, 6):
        gradients = of_strings(at_once=at_once)
        gradients.load(weights_of(model))
        found.append(gradients.of(ROWS)[order])
        torch.testing.assert_close(gradients.of(order), found[-1], rtol=0, atol=1e-4)
    torch.testing.assert_close(found[0], found[1], rtol=0, atol=1e-4)
    torch.testing.assert_close(found[0], found[2], rtol=0, atol=1e-4)


def test_weights_of_another_model_are_refused():
    with pytest.raises(UserError, match=r"another model: 'model\.decoder\.embed_tokens\.weight'"):
        of_strings().load(weights_of(twin("llama-3.1-8b")))
    with pytest.raises(UserError, match=r"another model: 'model\.decoder\.layers\.1"):
        of_strings().load(weights_of(twin(twin_layers=1)))


# TracIn


def plain_tracin(models, rates, epochs, weighs, measured):
    """As `tracin`, string by string and in float64."""
    encoded, n = strings(), weighs.copies.sum()
    size, per_step = n / weighs.steps, (weighs.copies * weighs.n_tokens).sum() / weighs.steps
    own = {name: [] for name in (PLAIN, ADAMW, "norm")}
    total = dict.fromkeys((PLAIN, ADAMW), 0.0)
    cross = dict.fromkeys((PLAIN, ADAMW, COSINE), 0.0)
    copies, second, before = np.maximum(weighs.copies, 1), 0.0, 0
    for model, rate, epoch in zip(models, rates, epochs, strict=True):
        grads = flat_gradients(model, encoded)
        multiset = np.repeat(grads, weighs.copies, axis=0)
        steps = [np.sum(some, axis=0) for some in itertools.combinations(multiset, int(size))]
        square = np.mean(np.square(steps), axis=0) / per_step**2
        shrink = min(1, weighs.clipping / np.sqrt(square.sum()))
        if epoch:
            kept = ADAM_BETAS[1] ** (weighs.steps * (epoch - before))
            second, before = kept * second + (1 - kept) * square * shrink**2, epoch
            moment = second / (1 - ADAM_BETAS[1] ** (weighs.steps * epoch))
        else:
            moment = square * shrink**2
        by_adamw = shrink * grads / (np.sqrt(moment) + ADAM_EPS)
        for name, left in ((PLAIN, grads), (ADAMW, by_adamw)):
            products = rate * left @ grads.T
            products *= copies[:, None] / per_step / weighs.n_tokens
            total[name] = total[name] + products
            own[name].append(np.diag(total[name]))
        norms = np.linalg.norm(grads, axis=1)
        own["norm"].append(norms / weighs.n_tokens)
        cross[COSINE] += rate * grads @ grads.T / np.outer(norms, norms) / np.sum(rates)
    cross |= total
    return (
        {name: np.array(values)[:, measured] for name, values in own.items()},
        {name: values[np.ix_(weighs.train, measured)] for name, values in cross.items()},
    )


@pytest.mark.parametrize("clipping", [1e9, 0.5])
def test_tracin_is_what_it_is_string_by_string(clipping):
    """With copies, strings never trained on, other lengths, and epochs that are not kept."""
    weighs = weighing(strings(), copies=(2, 1, 0, 2, 1, 0), steps=3, clipping=clipping)
    models, epochs = [twin(seed=seed) for seed in (1, 2, 3)], [0, 1, 4]
    rates, measured = np.array([0.0, 0.3, 0.5]), np.array([5, 1, 0, 3])
    found = tracin(of_strings(), map(weights_of, models), epochs, rates, weighs, measured)
    own, cross = plain_tracin(models, rates, epochs, weighs, measured)
    np.testing.assert_allclose(found.gradient_norm, own["norm"], rtol=CLOSE)
    for name in (PLAIN, ADAMW):
        np.testing.assert_allclose(found.self_influence[name], own[name], rtol=CLOSE)
    assert found.influence.keys() == cross.keys()
    for name, exact in cross.items():
        scale = np.abs(exact).max()
        np.testing.assert_allclose(found.influence[name], exact, atol=CLOSE * scale, rtol=CLOSE)


def test_tracin_is_the_loss_that_gradient_descent_takes_away():
    """A tiny step with and without a string, with the same number of tokens in its denominator."""
    encoded, rate = strings(), 1e-6
    weighs = weighing(encoded, copies=(2, 1, 0, 1, 1, 0), steps=1)
    start = twin(seed=1).double()
    found = tracin(of_strings(), [weights_of(start.float())], [1], np.array([rate]), weighs, ROWS)
    start = start.double()
    grads = flat_gradients(start, encoded)

    def losses_without(left_out: int | None) -> np.ndarray:
        copies = np.where(left_out == ROWS, 0, weighs.copies)
        step = rate * copies @ grads / weighs.tokens_of_a_step
        moved, weights = twin(seed=1).double(), torch.from_numpy(step)
        with torch.no_grad():
            torch.nn.utils.vector_to_parameters(
                torch.nn.utils.parameters_to_vector(moved.parameters()) - weights,
                moved.parameters(),
            )
            nll = [float(summed_nll(moved, encoded, row)) for row in ROWS]
        return np.array(nll) / encoded.n_tokens

    rise = [losses_without(row) - losses_without(None) for row in weighs.train]
    scale = np.abs(found.influence[PLAIN]).max()
    np.testing.assert_allclose(found.influence[PLAIN], rise, atol=1e-3 * scale)
    np.testing.assert_allclose(
        found.self_influence[PLAIN][0, weighs.train],
        np.array(rise)[np.arange(4), weighs.train],
        rtol=1e-3,
    )


def test_second_moments_are_near_those_of_the_optimiser():
    """Of a training in plain PyTorch; up to the factor, a score needs their order."""
    encoded = strings(lengths=(9,) * 16)
    weighs = weighing(encoded, copies=(1,) * 16, steps=4, clipping=1.0)
    model, gradients = twin(seed=1), StringGradients(twin(seed=9), encoded, CPU)
    moments, rng = SecondMoments(weighs), np.random.default_rng(0)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.0)
    for epoch in range(1, 11):
        for rows in rng.permutation(16).reshape(4, 4):
            optimizer.zero_grad()
            loss = sum(summed_nll(model, encoded, row) for row in rows)
            (loss / weighs.tokens_of_a_step).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), weighs.clipping)
            optimizer.step()
        gradients.load(weights_of(model))
        scale_P, shrink = moments.after(epoch, gradients.of(weighs.train))
    assert 0 < shrink <= 1
    state = {name: optimizer.state[weight] for name, weight in model.named_parameters()}
    true = torch.cat(
        [state[name]["exp_avg_sq"][: s[0]].flatten() for name, s in gradients.shapes.items()]
    )
    true = (true / (1 - ADAM_BETAS[1] ** 40)).sqrt()
    used = true > 1e-4
    ratio = ((1 / scale_P)[used] / true[used]).log()
    assert abs(float(ratio.median())) < 0.3
    assert float(torch.corrcoef(torch.stack([(1 / scale_P)[used], true[used]]).log())[0, 1]) > 0.8


def test_rates_belong_to_the_epochs_since_the_kept_ones_before():
    recipe = Recipe(0.1, epochs=6, warmup_ratio=0.2, schedule=COSINE_SCHEDULE)
    steps = [recipe.learning_rate_at(step, 18) for step in range(18)]
    every = rates_between(recipe, 3, range(7))
    np.testing.assert_allclose(every, [0, *np.reshape(steps, (6, 3)).mean(axis=1)])
    some = rates_between(recipe, 3, [0, 2, 5, 6])
    np.testing.assert_allclose(some, [0, every[1:3].sum(), every[3:6].sum(), every[6]])
    assert some.sum() == pytest.approx(np.sum(steps) / 3)
