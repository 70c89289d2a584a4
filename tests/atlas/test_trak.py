"""TRAK against its formula, with matrices that are written out."""

import numpy as np
import torch

from helpers.string_gradients import flat_gradients, strings, twin, weighing, weights_of
from palimpsest.atlas.string_gradients import StringGradients
from palimpsest.atlas.trak import random_directions, trak

CPU, SIZE, DAMPING, SEED = torch.device("cpu"), 3, 0.2, 5
ROWS = np.arange(6)
FAMILY = "llama-3.1-8b"  # no table of positions, so gradients have all parameters


def of_strings() -> StringGradients:
    return StringGradients(twin(FAMILY, seed=9), strings(), CPU)


def test_scores_follow_the_formula():
    """The mean over checkpoints, of which each has its own directions."""
    encoded, models = strings(), [twin(FAMILY, seed) for seed in (1, 2)]
    weighs, measured, total = weighing(encoded), np.array([5, 0, 3]), 0.0
    for place, model in enumerate(models):
        grads = flat_gradients(model, encoded)
        signs = random_directions(grads.shape[1], SIZE, [SEED, place]).double().numpy()
        assert set(np.unique(signs.astype(np.float32))) == {
            np.float32(-(SIZE**-0.5)),
            np.float32(SIZE**-0.5),
        }
        phi = grads @ signs
        kernel = sum(c * np.outer(one, one) for c, one in zip(weighs.copies, phi, strict=True))
        # Four training strings, three directions: three eigenvalues differ from 0.
        kernel += DAMPING * np.trace(kernel) / 3 * np.eye(SIZE)
        products = phi @ np.linalg.inv(kernel) @ phi.T
        total = total + products / (1 - weighs.copies * np.diag(products))[:, None] / len(models)
    exact = total * np.maximum(weighs.copies, 1)[:, None] / encoded.n_tokens
    checkpoints = map(weights_of, models)
    found = trak(of_strings(), checkpoints, weighs, measured, SIZE, DAMPING, SEED)
    scale = np.abs(exact).max()
    expected = exact[np.ix_(weighs.train, measured)]
    np.testing.assert_allclose(found.influence, expected, rtol=1e-4, atol=1e-5 * scale)
    np.testing.assert_allclose(found.self_influence, np.diag(exact)[measured], rtol=1e-4)


def test_many_directions_need_no_projection():
    """With many directions, scores near those of the gradients themselves."""
    encoded, model = strings(), twin(FAMILY, 1)
    weighs, grads = weighing(encoded), flat_gradients(model, encoded)
    train = grads[weighs.train] * weighs.copies[weighs.train, None] ** 0.5
    damped = DAMPING * np.square(train).sum() / len(train)
    # (G'G + d)^-1 by the identity of Woodbury, because G'G has a row for each parameter.
    inner = np.linalg.inv(train @ train.T + damped * np.eye(len(train)))
    products = grads @ grads.T - grads @ train.T @ inner @ train @ grads.T
    left = 1 - weighs.copies * np.diag(products) / damped
    exact = products / damped / left[:, None] * np.maximum(weighs.copies, 1)[:, None]
    exact = exact / encoded.n_tokens
    many = trak(of_strings(), [weights_of(model)], weighs, ROWS, 2000, DAMPING, SEED)
    found, scale = many.influence, np.abs(exact).max()
    np.testing.assert_allclose(found, exact[weighs.train], atol=0.15 * scale)
    few = trak(of_strings(), [weights_of(model)], weighs, ROWS, 2, DAMPING, SEED)
    assert np.abs(few.influence - exact[weighs.train]).max() > 0.15 * scale
