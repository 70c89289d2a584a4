"""Mutual information of neurons, against brute force, scikit-learn and known values."""

import itertools
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.feature_selection import mutual_info_regression

from helpers.experiments import message
from helpers.plain_information import brute_force
from palimpsest.information import (
    CopiesWarning,
    Pairs,
    kraskov,
    mutual_information,
    mutual_information_of_pairs,
    sampled_pairs,
)
from palimpsest.information.neurons import share_of_copies


@pytest.fixture
def chance():
    return np.random.default_rng(0)


def correlated(chance, n: int, rho: float) -> np.ndarray:
    """Two neurons float[n, 2] with the correlation rho."""
    x, noise = chance.normal(size=(2, n))
    return np.stack([x, rho * x + np.sqrt(1 - rho**2) * noise], axis=1)


@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("n", [11, 60, 300, 1000])
def test_it_is_that_of_brute_force(chance, n, k):
    """Independent, related, and of very different scales."""
    activations = chance.normal(size=(n, 5))
    activations[:, 1] += activations[:, 0] ** 2
    activations[:, 2] = np.exp(activations[:, 2])
    activations[:, 3] = activations[:, 0] + 1e-3 * activations[:, 3]
    activations[:, 4] *= 1e6
    found = mutual_information(activations, k)
    for i, j in itertools.combinations(range(5), 2):
        expected = brute_force(activations[:, i], activations[:, j], k)
        assert found[i, j] == pytest.approx(expected, abs=1e-12)
    np.testing.assert_array_equal(found, found.T)
    assert np.isnan(np.diag(found)).all()


def test_algorithm_3_without_the_point_itself_would_be_larger(chance):
    """Its text does not say whether a point is in its own count; the page says which we read."""
    larger = []
    for _ in range(10):
        x, y = correlated(chance, 400, 0.8).T
        with_itself = brute_force(x, y, 3, standardise=False)
        larger.append(brute_force(x, y, 3, standardise=False, itself=0) - with_itself)
    assert np.mean(larger) == pytest.approx(0.1, abs=0.02)


def test_neurons_that_are_not_divided_are_those_of_the_papers_algorithm(chance):
    """Algorithm 3 takes neurons as they are, so the estimate depends on their scales."""
    activations = chance.normal(size=(400, 4)) * [1, 1, 30, 0.01]
    activations[:, 1] += activations[:, 0]
    activations[:, 3] += 0.02 * activations[:, 0]
    found = mutual_information(activations, standardise=False)
    for i, j in itertools.combinations(range(4), 2):
        expected = brute_force(activations[:, i], activations[:, j], 3, standardise=False)
        assert found[i, j] == pytest.approx(expected, abs=1e-12)
    apart = np.abs(found - mutual_information(activations))
    assert np.nanmax(apart) > 0.005
    alike = activations / activations.std(axis=0)
    np.testing.assert_allclose(
        mutual_information(alike, standardise=False), mutual_information(activations), atol=1e-9
    )
    huge = mutual_information(activations * 2.0**600, standardise=False)
    np.testing.assert_array_equal(huge, found)


def test_zeros_of_neurons_that_are_not_divided_are_told_apart(chance):
    """The noise is in units of each neuron, so a small neuron keeps its zeros near each other."""
    activations = np.maximum(chance.normal(size=(400, 2)), 0) * [1, 1e-6]
    found = mutual_information(activations, standardise=False)[0, 1]
    assert abs(found) < 0.15


@settings(max_examples=30)
@given(st.integers(2, 200), st.integers(0, 1000), st.floats(-3, 3))
def test_it_is_that_of_brute_force_for_any_shape(n, seed, power):
    """Heavy tails and clusters, with few and many samples per column of the search."""
    chance = np.random.default_rng(seed)
    activations = np.sinh(power * chance.normal(size=(n, 2))) + chance.integers(0, 3, (n, 1))
    activations += 1e-6 * chance.normal(size=(n, 2))
    expected = brute_force(*activations.T, 1)
    found = mutual_information(activations, 1)[0, 1]
    assert found == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_normal_neurons_have_the_known_value(chance, rho):
    """Of two normal variables it is -log(1 - rho²) / 2."""
    found = [mutual_information(correlated(chance, 1000, rho))[0, 1] for _ in range(20)]
    error = np.std(found, ddof=1) / np.sqrt(20)
    assert abs(np.mean(found) + np.log(1 - rho**2) / 2) < 4 * error + 0.01


def test_scale_and_sign_change_nothing(chance):
    activations = correlated(chance, 300, 0.7)
    moved = activations * [-1024.0, 2.0**-20] + [0, 3]
    found = [mutual_information(own)[0, 1] for own in (activations, moved)]
    assert found[0] == pytest.approx(found[1], abs=1e-6)


def test_equal_values_are_no_information(chance):
    """Half of the activations are 0, as after a ReLU; scikit-learn says the same, up to its noise.

    Without the noise on equal values, independent neurons would have an estimate far below 0.
    """
    activations = np.maximum(chance.normal(size=(1000, 4)), 0)
    activations[:, 1] = np.maximum(activations[:, 0] + 0.5 * chance.normal(size=1000), 0)
    found = mutual_information(activations)
    for i, j in itertools.combinations(range(4), 2):
        theirs = [
            mutual_info_regression(activations[:, [i]], activations[:, j], random_state=seed)[0]
            for seed in range(5)
        ]
        # Theirs is cut at 0.
        spread = max(np.std(theirs), 0.01)
        assert abs(max(found[i, j], 0) - np.mean(theirs)) < 4 * spread
    assert abs(found[2, 3]) < 0.06


def test_the_seed_decides_the_noise_of_equal_values_only(chance):
    activations = chance.normal(size=(200, 3))
    activations[:, 2] = np.maximum(activations[:, 2], 0)
    first, again, other = (mutual_information(activations, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert first[0, 1] == other[0, 1]
    assert first[0, 2] != other[0, 2]


def test_a_pair_does_not_depend_on_the_others(chance):
    """Nor on the number of threads or, but for rounding, on which neuron is the first."""
    activations = np.maximum(chance.normal(size=(150, 20)), -0.5).astype(np.float32)
    whole = mutual_information(activations, threads=2)
    pairs = Pairs(np.array([3, 2, 0]), np.array([5, 19, 1]))
    found = mutual_information_of_pairs(activations, pairs, threads=1)
    np.testing.assert_array_equal(found, whole[pairs])
    swapped = mutual_information_of_pairs(activations, Pairs(pairs.second, pairs.first))
    np.testing.assert_allclose(swapped, found, atol=1e-13)


def test_degenerate_neurons_have_none_and_harm_no_other(chance):
    activations = chance.normal(size=(60, 5))
    activations[:, 1] = 2.0
    activations[3, 2] = np.nan
    activations[4, 3] = -np.inf
    found = mutual_information(activations)
    assert np.isnan(found[[1, 2, 3]]).all()
    assert np.isnan(found[:, [1, 2, 3]]).all()
    assert found[0, 4] == mutual_information(activations[:, [0, 4]])[0, 1]


def test_samples_of_pairs_are_distinct_and_even():
    """Each pair is drawn equally often, and all pairs are taken where there are few."""
    np.testing.assert_array_equal(sampled_pairs(6, 15), np.triu_indices(6, 1))
    drawn = [sampled_pairs(9, 12, seed) for seed in range(300)]
    for first, second in drawn:
        assert len(set(zip(first, second, strict=True))) == 12
        assert (first < second).all()
        assert (second < 9).all()
        assert (first >= 0).all()
    counts = np.zeros((9, 9))
    for pairs in drawn:
        counts[pairs] += 1
    # A third of 36 pairs is drawn, 300 times; five standard deviations
    assert abs(counts[np.triu_indices(9, 1)] - 100).max() < 5 * np.sqrt(300 * 2 / 9)
    large = sampled_pairs(100_000, 1000)
    assert (large.first < large.second).all()
    assert large.second.max() < 100_000


def test_what_does_not_fit_into_memory_is_refused(monkeypatch, chance):
    """The message says how many sampled pairs would fit, of all and of a sample that is too large.

    Half of 200,000 bytes may be used; to shuffle the numbers of all pairs takes 14,160.
    """
    monkeypatch.setattr(kraskov, "available_memory", lambda: 200_000)
    text = message(lambda: mutual_information(chance.normal(size=(10, 60))))
    assert text == (
        "mutual information: 1,770 pairs of 60 neurons need 0.0 GB, and 0.0 GB may be used; take "
        "at most 306 sampled pairs"
    )
    assert "take at most 306 sampled pairs" in message(lambda: sampled_pairs(60, 307))
    assert len(sampled_pairs(60, 306).first) == 306
    # A small sample of many neurons needs no table of all of them.
    assert "take at most 357 sampled pairs" in message(lambda: sampled_pairs(10_000, 400))
    assert len(sampled_pairs(10_000, 357).first) == 357


def test_there_is_memory():
    assert 2**20 < kraskov.available_memory() < 2**50


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble, int, bool, object])
@pytest.mark.filterwarnings("ignore::palimpsest.information.CopiesWarning")
def test_other_numbers_are_those_of_their_float64(chance, dtype):
    activations = (10 * chance.normal(size=(80, 4))).astype(dtype)
    found = mutual_information(activations)
    np.testing.assert_array_equal(found, mutual_information(activations.astype(float)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_copies_of_samples_are_counted_and_said(chance, dtype, recwarn):
    """A forward pass in another batch rounds in another way; such samples are copies, too."""
    distinct = chance.normal(size=(200, 20)).astype(dtype)
    assert share_of_copies(distinct) == 0
    plain = mutual_information(distinct)
    assert not recwarn.list
    rounded = distinct[:50] * (1 + np.finfo(dtype).eps * chance.integers(-2, 3, (50, 20)))
    twice = chance.permutation(np.concatenate([distinct, rounded.astype(dtype)]))
    assert share_of_copies(twice) == 100 / 250
    assert share_of_copies(np.concatenate([twice, twice])) == 1
    with pytest.warns(CopiesWarning, match=r"40.0% of the 250 samples are copies") as found:
        inflated = mutual_information(twice)
    assert "\n" not in str(found[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mutual_information(np.concatenate([distinct, distinct[:5]]))  # 10 of 205, which is 4.9 %
    others = ~np.eye(20, dtype=bool)
    assert inflated[others].mean() > plain[others].mean() + 0.1


@pytest.mark.parametrize("offset", [0, 1000])
def test_copies_up_to_a_jitter_are_copies(chance, offset):
    """Such as activations of float32 that are given in float64."""
    distinct = offset + chance.normal(size=(200, 2))
    assert share_of_copies(distinct) == 0
    twice = np.concatenate([distinct, distinct[:100] + 1e-8 * chance.normal(size=(100, 2))])
    assert share_of_copies(twice) == 200 / 300


def test_samples_that_share_some_neurons_are_no_copies(chance):
    activations = chance.normal(size=(100, 3))
    activations[50:, :2] = activations[:50, :2]
    assert share_of_copies(activations) == 0
    assert share_of_copies(activations[:, :2]) == 1


@pytest.mark.parametrize("offset", [0, 1, 1000])
@pytest.mark.filterwarnings("ignore::palimpsest.information.CopiesWarning")
def test_an_offset_is_no_information(chance, offset):
    """Nearly constant neurons far from 0, where a tiny noise would be rounded away."""
    one_differs = np.full((400, 2), offset, np.float32)
    one_differs[[3, 9], [0, 1]] += 1
    narrow = np.float32(offset + 1e-3 * chance.normal(size=(400, 2)))
    for activations in (one_differs, narrow):
        assert abs(mutual_information(activations)[0, 1]) < 0.1


@pytest.mark.parametrize(
    ("shape", "k", "words"),
    [
        ((3, 2), 3, "activations: 3 samples of 2 neurons; at least 4 samples of one neuron"),
        ((4, 0), 3, "activations: 4 samples of 0 neurons; at least 4 samples of one neuron"),
        ((4, 2), 0, "k: is 0 and must be a whole number at least 1"),
    ],
)
def test_bad_input_is_refused_in_one_line(shape, k, words):
    text = message(lambda: mutual_information(np.zeros(shape), k))
    assert text.startswith(words)
