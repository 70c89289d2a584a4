"""Norms of weight matrices, against singular values and paths by hand."""

import numpy as np
import pytest

from helpers.experiments import message
from palimpsest.information.norms import norms


@pytest.fixture
def matrices():
    chance = np.random.default_rng(0)
    return [chance.normal(size=shape).astype(np.float32) for shape in ((5, 3), (4, 5), (2, 4))]


def test_norms_are_those_of_singular_values(matrices):
    singular = [np.linalg.svd(matrix.astype(float), compute_uv=False) for matrix in matrices]
    found = norms(matrices)
    assert found.two_norm == pytest.approx(np.mean([np.log(s.max()) for s in singular]))
    rooted = [np.log(np.sqrt((s**2).sum())) for s in singular]
    assert found.frobenius == pytest.approx(np.mean(rooted))


def test_models_are_ordered_as_by_the_product(matrices):
    larger = [2 * matrices[0], 0.6 * matrices[1], matrices[2]]
    products = [np.prod([np.linalg.norm(m, 2) for m in own]) for own in (matrices, larger)]
    assert (norms(larger).two_norm > norms(matrices).two_norm) == (products[1] > products[0])


@pytest.mark.parametrize("wrong", [0.0, np.nan, np.inf])
def test_weights_that_are_no_numbers_are_refused(matrices, wrong):
    matrices[1][:] = wrong
    assert message(lambda: norms(matrices)).startswith("norms: matrix 1 is 0 or not finite; lower")


def test_no_weights_are_refused():
    assert message(lambda: norms([])) == "norms: the model has no weight matrices"
