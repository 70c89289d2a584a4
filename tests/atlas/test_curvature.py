"""The curvature of a string's loss against the whole matrix of second derivatives."""

import numpy as np
import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from helpers.families import FAMILIES
from helpers.string_gradients import strings, twin
from palimpsest.atlas.curvature import mean_curvature
from palimpsest.training.batches import IGNORED

SEED = 3


def hessian(model, encoded, row) -> np.ndarray:
    """float64[T D, T D] of a string's mean nll, with respect to the vectors of its tokens."""
    length = int(encoded.lengths[row])
    ids = torch.from_numpy(encoded.ids[[row], : length - 1])
    targets = torch.from_numpy(encoded.targets[row, 1:length])
    vectors = model.get_input_embeddings()(ids).detach()

    def loss(flat):
        logits = model(inputs_embeds=flat.view_as(vectors), use_cache=False).logits[0]
        return torch.nn.functional.cross_entropy(logits, targets, ignore_index=IGNORED)

    with sdpa_kernel(SDPBackend.MATH):
        found = torch.autograd.functional.hessian(loss, vectors.flatten())
    return found.double().numpy()


@pytest.mark.parametrize("family", FAMILIES)
def test_a_string_alone_has_the_norm_of_its_hessian_times_signs(family):
    encoded, model = strings(), twin(family, seed=1).eval()
    exact = hessian(model, encoded, 0)
    signs = np.random.default_rng(SEED).choice([-1.0, 1.0], size=len(exact))
    found = mean_curvature([model], encoded, np.array([0]), SEED)
    np.testing.assert_allclose(found, [[np.square(exact @ signs).sum()]], rtol=1e-3)


def test_over_many_epochs_it_is_the_squared_norm_of_the_hessian():
    """Random signs give the sum of all squared second derivatives, in the mean."""
    encoded, model = strings(), twin("llama-3.1-8b", seed=1).eval()
    rows = np.arange(len(encoded.lengths))
    found = mean_curvature([model] * 200, encoded, rows, SEED)
    exact = [np.square(hessian(model, encoded, row)).sum() for row in rows]
    np.testing.assert_allclose(found[-1], exact, rtol=0.2)
    assert np.corrcoef(found[-1], exact)[0, 1] > 0.95


def test_the_mean_is_over_the_epochs_so_far():
    encoded, rows = strings(), np.arange(3)
    models = [twin("opt-1.3b", seed).eval() for seed in (0, 1)]
    both = mean_curvature(models, encoded, rows, SEED)
    np.testing.assert_array_equal(both[:1], mean_curvature(models[:1], encoded, rows, SEED))
    assert both.shape == (2, 3)
    assert (both > 0).all()
    assert not np.isclose(both[0], both[1]).any()
