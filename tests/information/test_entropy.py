"""The entropy of neurons, against NumPy's histogram and known distributions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import entropy

from helpers.experiments import message
from palimpsest.information import (
    is_degenerate,
    mutual_information,
    neuron_entropy,
    trimmed_entropy,
)


@pytest.fixture
def chance():
    return np.random.default_rng(0)


def by_histogram(values: np.ndarray, bins: int) -> float:
    """The same number from NumPy's histogram and scipy's entropy."""
    return entropy(np.histogram(values.astype(float), bins)[0])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("bins", [1, 7, 100])
def test_it_is_that_of_numpys_histogram(chance, dtype, bins):
    """Also for more neurons than are counted together, and where values lie on edges of bins."""
    smooth = chance.normal(size=(500, 90))
    relu = np.maximum(smooth[:, :20], 0)
    on_edges = chance.integers(-30, 71, size=(500, 30)) * 0.1
    activations = np.hstack([smooth, relu, on_edges]).astype(dtype)
    expected = [by_histogram(own, bins) for own in activations.T]
    np.testing.assert_allclose(neuron_entropy(activations, bins), expected, atol=1e-12)


@pytest.mark.parametrize(
    "dtype", [np.float16, np.float32, np.longdouble, int, np.uint8, bool, object]
)
def test_other_numbers_are_those_of_their_float64(chance, dtype):
    """NumPy's floats of 16 bits overflow and round in sums, and Numba knows none."""
    activations = (10 * chance.normal(size=(300, 6))).astype(dtype)
    exact = activations.astype(float)
    np.testing.assert_array_equal(neuron_entropy(activations), neuron_entropy(exact))
    np.testing.assert_array_equal(is_degenerate(activations), is_degenerate(exact))
    np.testing.assert_array_equal(neuron_entropy(activations.tolist()), neuron_entropy(exact))


def test_the_rounding_of_float16_has_no_entropy(chance):
    """What varies, or is not finite, is left as it is."""
    varying = chance.normal(size=300)
    noise = np.float16(0.3) + np.arange(300) % 2 * np.spacing(np.float16(0.3))
    infinite = np.where(np.arange(300) == 7, np.inf, 1.0)
    activations = np.column_stack([varying, noise, infinite]).astype(np.float16)
    found = neuron_entropy(activations)
    assert found[1] == 0
    assert is_degenerate(activations).tolist() == [False, True, True]
    assert np.isnan(mutual_information(activations)[1]).all()
    assert np.isnan(found[2])
    assert found[0] == neuron_entropy(activations.astype(float))[0]


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=1, max_size=30), st.integers(1, 40))
def test_it_is_between_0_and_the_logarithm_of_the_bins(values, bins):
    (found,) = neuron_entropy(np.array(values)[:, None], bins)
    assert -1e-12 <= found <= math.log(min(bins, len(values))) + 1e-12


def test_scale_and_shift_change_nothing(chance):
    activations = chance.normal(size=(400, 8))
    moved = neuron_entropy(activations * 4096 - 1024)
    np.testing.assert_allclose(moved, neuron_entropy(activations), atol=0.02)


def test_known_distributions(chance):
    """Two values are log 2, a uniform neuron is nearly log 100."""
    two = np.repeat([0.0, 1.0], 500)
    uniform = np.linspace(0, 1, 1000)
    found = neuron_entropy(np.stack([two, uniform], axis=1))
    np.testing.assert_allclose(found, [math.log(2), math.log(100)], atol=1e-9)


def test_degenerate_neurons_are_named_and_harm_no_other(chance):
    """A constant neuron has entropy 0; one that is not finite has none."""
    activations = chance.normal(size=(50, 5)).astype(np.float32)
    activations[:, 1] = 3.0
    activations[7, 2] = np.nan
    activations[9, 3] = np.inf
    assert is_degenerate(activations).tolist() == [False, True, True, True, False]
    found = neuron_entropy(activations)
    assert found[1] == 0
    assert np.isnan(found[[2, 3]]).all()
    alone = neuron_entropy(activations[:, [0, 4]])
    np.testing.assert_array_equal(found[[0, 4]], alone)


@pytest.mark.parametrize(
    ("activations", "bins", "words"),
    [
        (np.zeros((0, 3)), 100, "activations: 0 samples of 3 neurons; at least 1 samples of"),
        (np.zeros((3, 0)), 100, "activations: 3 samples of 0 neurons; at least 1 samples of"),
        (np.zeros(3), 100, "activations: an array float64[3]; they must be float[samples, "),
        ([["a", "b"]], 100, "activations: are not a table of numbers; they must be float[samples,"),
        ([[1, 2], [3]], 100, "activations: are not a table of numbers; they must be float[samples"),
        (np.zeros((3, 2)), 0, "bins: is 0 and must be a whole number at least 1"),
        (np.zeros((3, 2)), 2.5, "bins: is 2.5 and must be a whole number at least 1"),
        (np.zeros((3, 2)), True, "bins: is True and must be a whole number at least 1"),
    ],
)
def test_bad_input_is_refused_in_one_line(activations, bins, words):
    text = message(lambda: neuron_entropy(activations, bins))
    assert text.startswith(words)
    assert "\n" not in text


def test_a_range_that_is_too_small_for_bins_is_none():
    """The width of a bin would be 0."""
    activations = np.array([[0.0, 1.0], [5e-324, 2.0]])
    np.testing.assert_allclose(neuron_entropy(activations), [0, np.log(2)])


# The trimmed entropy


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("trim", [0.0, 0.01, 0.2])
def test_a_trimmed_entropy_is_that_of_numpys_histogram_of_what_is_left(chance, dtype, trim):
    """Samples beyond the range are counted in the outermost bins."""
    activations = np.exp(chance.normal(size=(300, 9))).astype(dtype)
    low, high = np.quantile(activations.astype(float), [trim, 1 - trim], axis=0)
    expected = [
        entropy(np.histogram(own.astype(float).clip(*ends), 100, ends)[0])
        for own, ends in zip(activations.T, np.stack([low, high], axis=1), strict=True)
    ]
    np.testing.assert_allclose(trimmed_entropy(activations, trim=trim), expected, atol=0.02)
    untrimmed = trimmed_entropy(activations, trim=0.0)
    np.testing.assert_allclose(untrimmed, neuron_entropy(activations), atol=1e-12)


def test_one_outlier_changes_the_papers_entropy_and_not_the_trimmed_one(chance):
    """One of 256 samples, at ten standard deviations."""
    normal = chance.normal(size=(256, 50))
    outlier = normal.copy()
    outlier[0] = 10.0
    paper = neuron_entropy(normal) - neuron_entropy(outlier)
    assert paper.min() > 0.4
    assert paper.mean() == pytest.approx(0.7, abs=0.1)
    trimmed = np.abs(trimmed_entropy(normal) - trimmed_entropy(outlier))
    assert trimmed.mean() < paper.mean() / 20
    assert trimmed.max() < paper.min() / 2


def test_a_neuron_that_is_nearly_always_0_has_its_whole_range(chance):
    activations = np.zeros((400, 1))
    activations[:3, 0] = 1.0, 2.0, 3.0
    np.testing.assert_array_equal(trimmed_entropy(activations), neuron_entropy(activations))
    assert trimmed_entropy(activations)[0] > 0


def test_degenerate_neurons_are_the_same_ones_when_trimmed(chance):
    activations = chance.normal(size=(50, 4)).astype(np.float32)
    activations[:, 1] = 3.0
    activations[7, 2] = np.nan
    activations[9, 3] = np.inf
    found = trimmed_entropy(activations)
    assert found[1] == 0
    assert np.isnan(found).tolist() == [False, False, True, True]


@pytest.mark.parametrize("trim", [-0.1, 0.5, "1"])
def test_a_trim_that_leaves_nothing_is_refused(trim):
    text = message(lambda: trimmed_entropy(np.zeros((3, 2)), trim=trim))
    assert text.startswith(f"trim: is {trim!r} and must be a number at least 0 and below 0.5")
