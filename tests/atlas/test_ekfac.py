"""EK-FAC against matrices that are written out, and against the exact curvature."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch import nn

from helpers.families import FAMILIES
from helpers.string_gradients import by_autograd, strings, twin, weighing
from palimpsest.atlas import ekfac
from palimpsest.atlas.ekfac import DAMPING, drawn, ekfac_influence, linear_layers
from palimpsest.errors import UserError
from palimpsest.training.batches import IGNORED, TokenisedStrings

ROWS = np.arange(6)
DRAWS, OPT = 2, "opt-1.3b"


def tiny(family: str = OPT, **sizes):
    """Few enough weights that the matrix of a layer can be written out; in float64."""
    return twin(family, seed=1, **{"twin_hidden": 4, "twin_layers": 1, **sizes}).double()


def fixed_labels(encoded: TokenisedStrings):
    """Labels that do not depend on how strings are batched."""
    rng = np.random.default_rng(3)
    table = rng.integers(2, 9, (DRAWS, *encoded.targets.shape))
    table = np.where(encoded.targets == IGNORED, IGNORED, table)

    def labels(draw, rows, logits_BTV, targets_BT):
        return torch.from_numpy(table[draw, rows, 1 : 1 + targets_BT.shape[1]])

    return table, labels


def of_layer(grads: dict[str, torch.Tensor], name: str) -> np.ndarray:
    """The gradient [O, I] of a layer's weights, with its bias as the last column."""
    parts = [grads[f"{name}.weight"]]
    if f"{name}.bias" in grads:
        parts.append(grads[f"{name}.bias"][:, None])
    return torch.cat(parts, dim=1).numpy()


def moments(model, encoded, layer, row: int, labels) -> tuple[np.ndarray, np.ndarray]:
    """Sums of the outer products of a layer's inputs, and of the gradients of its outputs."""
    kept = {}

    def note(_, given, out):
        out.retain_grad()
        kept["inputs"], kept["out"] = given[0].detach(), out

    hook = layer.register_forward_hook(note)
    by_autograd(model, encoded, row, labels)
    hook.remove()
    inputs = kept["inputs"].reshape(-1, kept["inputs"].shape[-1]).numpy()
    if layer.bias is not None:
        inputs = np.column_stack([inputs, np.ones(len(inputs))])
    grads = kept["out"].grad.reshape(len(inputs), -1).numpy()
    return inputs.T @ inputs, grads.T @ grads


def written_out(model, encoded, weighs, table) -> np.ndarray:
    """Influence float64[train, strings], with a matrix [O * I, O * I] for each layer."""
    total = 0.0
    for name, layer in linear_layers(model).items():
        inputs = outputs = 0.0
        samples = []
        for row in weighs.train:
            for draw in range(DRAWS):
                labels = table[draw, row, 1:]
                factors = moments(model, encoded, layer, row, labels)
                inputs = inputs + weighs.copies[row] * factors[0]
                outputs = outputs + weighs.copies[row] * factors[1]
                gradient = of_layer(by_autograd(model, encoded, row, labels), name).ravel()
                samples.append(gradient * (weighs.copies[row] / DRAWS) ** 0.5)
        basis = np.kron(np.linalg.eigh(outputs)[1], np.linalg.eigh(inputs)[1])
        fisher = np.sum([np.outer(one, one) for one in samples], axis=0)
        values = np.diag(basis.T @ fisher @ basis)
        curvature = (basis * values) @ basis.T
        curvature += DAMPING * values.mean() * np.eye(len(curvature))
        grads = np.array([of_layer(by_autograd(model, encoded, row), name).ravel() for row in ROWS])
        total = total + grads @ np.linalg.solve(curvature, grads.T)
    return total * np.maximum(weighs.copies, 1)[:, None] / weighs.n_tokens


@pytest.mark.parametrize(("family", "at_once"), [*((name, 4) for name in FAMILIES), (OPT, 1)])
def test_influence_is_that_of_written_out_matrices(monkeypatch, family, at_once):
    """With and without biases, strings of other lengths in a batch, copies, and unseen strings."""
    monkeypatch.setattr(ekfac, "AT_ONCE", at_once)
    encoded, model = strings(), tiny(family)
    weighs, (table, labels) = weighing(encoded), fixed_labels(encoded)
    exact = written_out(model, encoded, weighs, table)
    measured = np.array([5, 0, 3, 2])
    found = ekfac_influence(model, encoded, weighs, measured, draws=DRAWS, labels=labels)
    scale = np.abs(exact).max()
    expected = exact[np.ix_(weighs.train, measured)]
    np.testing.assert_allclose(found.influence, expected, rtol=1e-4, atol=1e-6 * scale)
    np.testing.assert_allclose(found.self_influence, np.diag(exact)[measured], rtol=1e-4)


class Softmax(nn.Module):
    """Softmax regression: the logits of a token's successor are linear in its embedding."""

    def __init__(self, vocabulary: int, width: int):
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(vocabulary, width)
        self.linear = nn.Linear(width, vocabulary, bias=False)

    def get_input_embeddings(self) -> nn.Embedding:
        return self.table

    def forward(self, input_ids, use_cache):
        return SimpleNamespace(logits=self.linear(self.table(input_ids)))


@pytest.mark.parametrize("damping", [0.01, 1.0])
def test_it_is_the_exact_inverse_where_the_curvature_is_a_kronecker_product(damping):
    """With weights of 0 all labels are equally probable, so outputs do not depend on inputs.

    Every label is drawn once, which is the mean over the model's own draws. The generalised
    Gauss-Newton matrix is then known in closed form.
    """
    vocabulary, width = 5, 3
    rows = [[0, 1], [1, 4], [2, 2], [3, 0]]
    encoded = TokenisedStrings.of_rows(rows, filler=0)
    weighs = weighing(encoded, copies=(1, 3, 1, 0))
    model = Softmax(vocabulary, width).double()
    nn.init.zeros_(model.linear.weight)

    def every_label(draw, rows, logits_BTV, targets_BT):
        return torch.full_like(targets_BT, draw)

    embedded = model.table.weight.detach().numpy()[[row[0] for row in rows]]
    share = np.full(vocabulary, 1 / vocabulary)
    of_outputs = np.diag(share) - np.outer(share, share)
    of_inputs = (embedded.T * weighs.copies) @ embedded
    gauss_newton = np.kron(of_outputs, of_inputs)
    gauss_newton += damping * np.trace(gauss_newton) / len(gauss_newton) * np.eye(15)
    grads = np.array(
        [
            np.outer(share - np.eye(vocabulary)[row[1]], a).ravel()
            for row, a in zip(rows, embedded, strict=True)
        ]
    )
    exact = grads @ np.linalg.solve(gauss_newton, grads.T) * [[1], [3], [1], [1]]
    found = ekfac_influence(
        model, encoded, weighs, np.arange(4), damping, vocabulary, labels=every_label
    )
    np.testing.assert_allclose(found.influence, exact[:3], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(found.self_influence, np.diag(exact), rtol=1e-9)


def test_labels_are_drawn_from_the_model():
    """Their shares are the probabilities, and what is not predicted has none."""
    logits = torch.tensor([2.0, 0.0, 1.0]).log_softmax(-1).expand(1, 20_000, 3)
    targets = torch.zeros(1, 20_000, dtype=torch.long)
    targets[0, :100] = IGNORED
    labels = drawn(0)(0, np.array([4]), logits, targets)
    assert (labels[0, :100] == IGNORED).all()
    shares = torch.bincount(labels[0, 100:], minlength=3) / 19_900
    torch.testing.assert_close(shares, logits[0, 0].exp(), atol=0.01, rtol=0)


def test_draws_differ_by_seed_and_are_repeated():
    encoded = strings()
    found = [
        ekfac_influence(tiny(), encoded, weighing(encoded), ROWS, seed=seed).influence
        for seed in (0, 0, 1)
    ]
    np.testing.assert_array_equal(found[0], found[1])
    assert not np.allclose(found[0], found[2], rtol=1e-3)


def test_a_head_counts_unless_it_is_the_embedding():
    heads = {
        family: [name for name in linear_layers(tiny(family)) if "layers" not in name]
        for family in (OPT, "llama-3.1-8b")
    }
    assert heads == {OPT: [], "llama-3.1-8b": ["lm_head"]}
    encoded = strings()
    with pytest.raises(UserError, match="no linear layer"):
        ekfac_influence(nn.Embedding(3, 2), encoded, weighing(encoded), ROWS)
