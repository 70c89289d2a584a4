"""Norms of weight matrices, against singular values and paths by hand."""

import itertools

import numpy as np
import pytest

from helpers.experiments import message
from palimpsest.information.norms import norms, path_norm


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


def by_paths(matrices, biases=None):
    """The path norm, path by path."""
    widths = [matrices[0].shape[1], *(matrix.shape[0] for matrix in matrices)]
    total = 0.0
    for start in range(len(matrices)):
        # A path begins at an input or, with biases, at the bias of a layer.
        starts = range(widths[0]) if start == 0 else ()
        for path in itertools.product(starts, *(range(n) for n in widths[1:])):
            steps = itertools.pairwise(path)
            total += np.prod([m[b, a] ** 2 for m, (a, b) in zip(matrices, steps, strict=True)])
        if biases is not None:
            for path in itertools.product(*(range(n) for n in widths[start + 1 :])):
                steps = zip(matrices[start + 1 :], itertools.pairwise(path), strict=True)
                total += biases[start][path[0]] ** 2 * np.prod(
                    [m[b, a] ** 2 for m, (a, b) in steps]
                )
    return np.log(total) / 2


def test_a_path_norm_is_the_sum_over_all_paths():
    chance = np.random.default_rng(0)
    matrices = [chance.normal(size=shape) for shape in ((3, 2), (4, 3), (2, 4))]
    biases = [chance.normal(size=len(matrix)) for matrix in matrices]
    assert path_norm(matrices) == pytest.approx(by_paths(matrices))
    assert path_norm(matrices, biases) == pytest.approx(by_paths(matrices, biases))
    deep = [np.full((8, 8), 1e30)] * 30
    assert path_norm(deep) == pytest.approx(30 * np.log(1e30) + 31 / 2 * np.log(8))


@pytest.mark.parametrize(
    ("matrices", "biases", "words"),
    [
        ([], (), "path_norm: the model has no weight matrices"),
        ([np.ones((3, 2)), np.ones((2, 4))], (), "path_norm: must be matrices [outputs, inputs]"),
        ([np.ones(3)], (), "path_norm: must be matrices [outputs, inputs] in the order"),
        ([np.ones((3, 2))], [np.ones(2)], "path_norm: must be matrices [outputs, inputs] in the"),
        ([np.zeros((3, 2))], (), "path_norm: no path from input to output is finite and above 0"),
        ([np.full((3, 2), np.nan)], (), "path_norm: no path from input to output is finite"),
    ],
)
def test_what_has_no_path_norm_is_refused(matrices, biases, words):
    assert message(lambda: path_norm(matrices, biases)).startswith(words)
