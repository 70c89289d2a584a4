"""The Kolmogorov-Smirnov test between two kinds of models, over all strings."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp

from palimpsest.unlearning.attacks.kolmogorov import ks_distances, ks_p_value


def test_distances_by_hand():
    """One string apart; one with distribution functions 1/2 apart between 1 and 2; one equal."""
    unlearned = np.array([[1.0, 1.0, 1.0], [2.0, 3.0, 2.0]])
    retrained = np.array([[5.0, 2.0, 2.0], [6.0, 4.0, 1.0]])
    np.testing.assert_allclose(ks_distances(unlearned, retrained), [1, 0.5, 0])


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 12), st.sampled_from([0, 1, 9]))
def test_distances_are_scipys(seed, n, m, decimals):
    """With and without ties, for samples of any size."""
    chance = np.random.default_rng(seed)
    unlearned = chance.normal(0.5, 1, (n, 3)).round(decimals)
    retrained = chance.normal(size=(m, 3)).round(decimals)
    pairs = zip(unlearned.T, retrained.T, strict=True)
    expected = [ks_2samp(*pair, method="exact").statistic for pair in pairs]
    np.testing.assert_allclose(ks_distances(unlearned, retrained), expected)


def test_many_models_do_not_overflow():
    apart = np.arange(400.0)[:, None] + np.zeros(2)
    np.testing.assert_array_equal(ks_distances(apart, apart[:399] + 1000), 1)


def test_the_p_value_is_that_of_all_labellings():
    """With 4 and 4 models there are 70 labellings; here they are all tried, with scipy."""
    chance = np.random.default_rng(3)
    unlearned, retrained = chance.normal(0.8, 1, (4, 3)), chance.normal(size=(4, 3))
    pooled = np.concatenate([unlearned, retrained])

    def statistic(chosen):
        is_one = np.isin(np.arange(8), chosen)
        pairs = zip(pooled[is_one].T, pooled[~is_one].T, strict=True)
        gaps = [round(4 * ks_2samp(*pair).statistic) for pair in pairs]
        return max(gaps), sum(gaps)

    all_labellings = [statistic(chosen) for chosen in itertools.combinations(range(8), 4)]
    exact = np.mean([one >= statistic(range(4)) for one in all_labellings])
    assert ks_p_value(unlearned, retrained, 9999) == pytest.approx(exact, abs=0.015)


def test_the_size_of_chunks_does_not_matter(monkeypatch):
    chance = np.random.default_rng(0)
    samples = chance.normal(0.3, 1, (12, 4)), chance.normal(size=(10, 4))
    whole = ks_p_value(*samples, 99)
    monkeypatch.setattr("palimpsest.unlearning.attacks.kolmogorov.CHUNK", 500)
    assert ks_p_value(*samples, 99) == whole


@pytest.mark.parametrize("shared", [0, 2])
def test_retrained_models_are_told_from_retrained_ones_in_at_most_6_per_cent(shared):
    """32 models of each kind and 9 strings, independent or with a common part in each model."""
    chance = np.random.default_rng(shared)
    p = []
    for study in range(500):
        loss = chance.normal(size=(64, 9)) + shared * chance.normal(size=(64, 1))
        p.append(ks_p_value(loss[:32], loss[32:], 199, seed=study))
    # Up to 6 % and the error of 500 studies: two standard deviations.
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 500)
    assert np.mean(p) == pytest.approx(0.5, abs=0.05)


def test_one_string_is_enough_to_tell():
    chance = np.random.default_rng(0)
    loss = chance.normal(size=(64, 9))
    loss[:32, 4] -= 2
    assert ks_p_value(loss[:32], loss[32:]) == 1 / 1000
