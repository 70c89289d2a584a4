"""Influence functions: against dense matrices, and on a problem whose answer is known."""

import numpy as np
import pytest
import torch

from palimpsest.profiles import influence
from palimpsest.training.batches import TokenisedStrings

VOCABULARY, LENGTH, STRINGS = 5, 4, 12


class LinearModels:
    """M softmax regressions on the previous token: their loss is convex in the weights."""

    device = torch.device("cpu")

    def __init__(self, weights_MVV: torch.Tensor):
        self._weight = weights_MVV.clone().requires_grad_()
        self.count = len(weights_MVV)
        self.shapes = {"weight": weights_MVV.shape[1:]}

    def logits(self, ids_MBT):
        return torch.stack([self._weight[m][ids] for m, ids in enumerate(ids_MBT)])

    def gradients(self, loss_M):
        return {"weight": torch.autograd.grad(loss_M.sum(), self._weight)[0]}

    def weights(self):
        return Weights(self._weight)


class Weights:
    """The context in which weights are changed in place."""

    def __init__(self, weight):
        self._weight = weight

    def __enter__(self):
        self._no_grad = torch.no_grad()
        self._no_grad.__enter__()
        return {"weight": self._weight}

    def __exit__(self, *error):
        self._no_grad.__exit__(*error)


def strings(seed=0) -> TokenisedStrings:
    ids = np.random.default_rng(seed).integers(0, VOCABULARY, size=(STRINGS, LENGTH + 1))
    return TokenisedStrings(ids, np.full(STRINGS, LENGTH + 1))


def models(count=2, seed=0) -> LinearModels:
    chance = torch.Generator().manual_seed(seed)
    weight = torch.randn(VOCABULARY, VOCABULARY, generator=chance)
    return LinearModels(weight.expand(count, -1, -1))


def hessian(model: LinearModels, tokenised: TokenisedStrings, rows) -> np.ndarray:
    """The Hessian of the mean nll of some strings, by automatic differentiation.

    In a regression that is linear in its weights, the Gauss-Newton matrix is the Hessian.
    """
    ids = torch.from_numpy(tokenised.ids[rows])

    def loss(flat):
        logits = flat.reshape(VOCABULARY, VOCABULARY).double()[ids[:, :-1]]
        log_p = logits.log_softmax(-1).gather(-1, ids[:, 1:, None])
        return -log_p.sum() / len(rows)

    with model.weights() as weights:
        start = weights["weight"][0].detach().double().reshape(-1)
    return torch.autograd.functional.hessian(loss, start).numpy()


def test_products_are_those_of_the_dense_matrix():
    some, rows, copies = strings(), np.arange(8), models()
    dense = hessian(copies, some, rows)
    product = influence.GaussNewton(copies, some, rows)
    vector = torch.from_numpy(np.random.default_rng(1).normal(size=(2, VOCABULARY**2))).float()
    expected = vector.numpy() @ dense
    np.testing.assert_allclose(product.times(vector).numpy(), expected, atol=2e-3)
    # The weights are as before.
    np.testing.assert_array_equal(influence.flat_weights(copies), product.start_MP)


def test_conjugate_gradients_solve_every_system():
    chance = np.random.default_rng(0)
    roots = chance.normal(size=(3, 6, 6))
    matrices = torch.from_numpy(roots @ roots.transpose(0, 2, 1) + np.eye(6))
    right = torch.from_numpy(chance.normal(size=(3, 6)))
    right[2] = 0
    found = influence.conjugate_gradients(
        lambda v: torch.einsum("mij,mj->mi", matrices, v), right, 30
    )
    np.testing.assert_allclose(found, torch.linalg.solve(matrices, right), atol=1e-8)
    assert (found[2] == 0).all()


def test_gradients_are_of_each_models_own_strings():
    some, copies = strings(), models()
    together = influence.gradients_of_sums(copies, some, [np.array([0, 1, 2]), np.array([5])])
    for place, rows in enumerate(([0, 1, 2], [5])):
        each = [
            influence.gradients_of_sums(copies, some, [np.array([row])] * 2)[place] for row in rows
        ]
        torch.testing.assert_close(together[place], torch.stack(each).sum(0))


def test_weights_move_to_where_a_convex_training_would_end(monkeypatch):
    """Trained to the end without a string, a regression is where the influence function says."""
    monkeypatch.setattr(influence, "DAMPING", 1e-6)
    monkeypatch.setattr(influence, "RELATIVE_STEP", 1e-3)
    monkeypatch.setattr(influence, "STEPS", 60)
    some, everything = many_strings(), np.arange(400)
    whole, spare = everything[:390], everything[390:]
    start = trained(some, np.ones(390) / 390, whole)
    copies = LinearModels(start[None].float())
    moved = influence.without(copies, some, [whole[:10]], spare, whole)
    weights = np.concatenate([np.zeros(10), np.ones(380), np.ones(10)]) / 390
    again = trained(some, weights, everything)
    expected = (again - start).reshape(-1).numpy()
    found = moved.weights[0].numpy() - start.reshape(-1).numpy()
    assert moved.residual[0] < 0.05
    # A softmax does not change if a constant is added to all logits of a position.
    expected, found = (centred(values) for values in (expected, found))
    assert np.corrcoef(expected, found)[0, 1] > 0.9
    assert np.linalg.norm(found) == pytest.approx(np.linalg.norm(expected), rel=0.35)


def test_plain_removal_is_the_papers_formula(monkeypatch):
    """Nothing takes the place of the strings: the weights of a training on the others alone."""
    monkeypatch.setattr(influence, "DAMPING", 1e-6)
    monkeypatch.setattr(influence, "RELATIVE_STEP", 1e-3)
    monkeypatch.setattr(influence, "STEPS", 60)
    some, whole = many_strings(), np.arange(390)
    start = trained(some, np.ones(390) / 390, whole)
    moved = influence.without(LinearModels(start[None].float()), some, [whole[:10]], None, whole)
    weights = np.concatenate([np.zeros(10), np.ones(380)]) / 390
    expected = (trained(some, weights, whole) - start).reshape(-1).numpy()
    found = moved.weights[0].numpy() - start.reshape(-1).numpy()
    expected, found = (centred(values) for values in (expected, found))
    assert np.corrcoef(expected, found)[0, 1] > 0.9
    assert np.linalg.norm(found) == pytest.approx(np.linalg.norm(expected), rel=0.35)


def test_the_result_does_not_depend_on_the_number_of_copies():
    """Copies are held in parts of any size, as memory allows."""
    some, training = strings(), np.arange(10)
    removed = [np.array([0, 1]), np.array([2, 3])]
    together = influence.without(models(2), some, removed, np.array([10, 11]), training)
    alone = influence.without(models(1), some, removed[:1], np.array([10, 11]), training)
    torch.testing.assert_close(together.weights[:1], alone.weights, rtol=1e-4, atol=1e-5)


def test_losses_are_those_of_each_models_own_rows():
    some, copies = strings(), models()
    both = influence.losses(copies, some, [np.array([0, 1, 2]), np.array([5])])
    assert [len(own) for own in both] == [3, 1]
    ids = torch.from_numpy(some.ids)
    log_p = copies.logits(ids[None, :, :-1].expand(2, -1, -1)).log_softmax(-1)
    nll = -log_p.gather(-1, ids[None, :, 1:, None].expand(2, -1, -1, 1))[..., 0].sum(-1)
    np.testing.assert_allclose(both[0], nll[0, :3].detach(), rtol=1e-5)
    np.testing.assert_allclose(both[1], nll[1, 5:6].detach(), rtol=1e-5)


def many_strings() -> TokenisedStrings:
    ids = np.random.default_rng(3).integers(0, VOCABULARY, size=(400, LENGTH + 1))
    return TokenisedStrings(ids, np.full(400, LENGTH + 1))


def trained(some: TokenisedStrings, weights: np.ndarray, rows: np.ndarray) -> torch.Tensor:
    """The weights that minimise the weighted nll of some strings, up to constants of a position."""
    counts = np.zeros((VOCABULARY, VOCABULARY))
    for row, weight in zip(rows, weights, strict=True):
        np.add.at(counts, (some.ids[row, :-1], some.ids[row, 1:]), weight)
    return torch.from_numpy(np.log(counts / counts.sum(1, keepdims=True)))


def centred(values: np.ndarray) -> np.ndarray:
    square = values.reshape(VOCABULARY, VOCABULARY)
    return (square - square.mean(axis=1, keepdims=True)).ravel()


def test_strings_of_several_lengths_count_only_their_own_tokens():
    ids = strings().ids.copy()
    short = TokenisedStrings(ids, np.array([3] + [LENGTH + 1] * (STRINGS - 1)))
    other = ids.copy()
    other[0, 3:] = 0
    changed = TokenisedStrings(other, short.lengths)
    rows = [np.array([0, 1])] * 2
    torch.testing.assert_close(
        influence.gradients_of_sums(models(), short, rows),
        influence.gradients_of_sums(models(), changed, rows),
    )
