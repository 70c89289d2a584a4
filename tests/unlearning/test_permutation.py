"""The null by relabelling: what it must be, and that compiled code gives the same."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.epsilon_samples import samples
from palimpsest import unlearning
from palimpsest.unlearning.attacks.permutation import (
    against_chance,
    permutation_null,
    relabelled_epsilons,
    relabellings,
    relative_quality,
)
from palimpsest.unlearning.attacks.quality import forgetting_quality, largest_epsilon

# The first call compiles.
UNHURRIED = settings(deadline=None)
THRESHOLDS = ["exact", "grid"]


def difference(unlearned, retrained):
    """Of the mean over models and examples, without its sign."""
    return abs(unlearned.mean() - retrained.mean())


def test_by_hand_with_all_relabellings():
    """2 + 2 models: 6 labellings, and 2 of these separate the low from the high values."""
    unlearned, retrained = np.array([[0.0], [1.0]]), np.array([[4.0], [7.0]])
    null, p = permutation_null(unlearned, retrained, difference, n=3000, seed=1)
    values, counts = np.unique(null, return_counts=True)
    np.testing.assert_array_equal(values, [1, 2, 5])
    np.testing.assert_allclose(counts / 3000, 1 / 3, atol=0.03)
    assert p == (1 + counts[-1]) / 3001


def test_all_strings_are_relabelled_together():
    """Equal strings stay equal, so their mean has the null of one string."""
    one = np.random.default_rng(0).normal(size=(2, 8, 1))
    null, p = permutation_null(*one, difference, n=50)
    of_copies, p_of_copies = permutation_null(*np.repeat(one, 5, axis=2), difference, n=50)
    np.testing.assert_allclose(of_copies, null)
    assert p_of_copies == p


def test_a_statistic_may_have_a_value_per_string():
    pair = np.random.default_rng(1).normal([[[0.0, 9.0]], [[0.0, 0.0]]], 1, (2, 9, 2))
    null, p = permutation_null(*pair, lambda x, y: abs(x.mean(axis=0) - y.mean(axis=0)), n=99)
    assert null.shape == (99, 2)
    assert p[0] > 0.01
    assert p[1] == 0.01


def test_rounding_errors_do_not_make_a_value_larger():
    """Every relabelling has the same statistic, apart from its last digits."""
    pair = np.full((2, 6, 1), 0.1)
    chance = np.random.default_rng(0)
    assert permutation_null(*pair, lambda x, y: 1 - 1e-13 * chance.random(), n=20)[1] == 1


def test_mistakes_are_told():
    pair = np.random.default_rng(1).normal(size=(2, 5, 2))
    with pytest.raises(ValueError, match="NaN"):
        permutation_null(*pair, lambda x, y: np.nan, n=3)
    with pytest.raises(ValueError, match=r"n: is .* a whole number at least 1"):
        permutation_null(*pair, difference, n=0)
    with pytest.raises(ValueError, match="unknown thresholds"):
        relabelled_epsilons(*pair, thresholds="both")


def test_labels_are_as_many_in_every_relabelling():
    labels = relabellings(5, 7, 100, seed=3)
    assert (labels.sum(axis=1) == 7).all()
    assert len(np.unique(labels, axis=0)) > 80
    np.testing.assert_array_equal(labels, relabellings(5, 7, 100, seed=3))


# Compiled


@pytest.mark.parametrize("thresholds", THRESHOLDS)
@given(pair=samples(most_models=14), delta=st.sampled_from([0.0, 1e-5, 0.3]))
@UNHURRIED
def test_compiled_epsilons_are_those_of_the_plain_null(thresholds, pair, delta):
    def plain(*relabelled):
        return unlearning.epsilon(*relabelled, delta, thresholds)

    found = relabelled_epsilons(*pair, delta, thresholds, n=5, seed=2)
    np.testing.assert_array_equal(found, permutation_null(*pair, plain, n=5, seed=2)[0])


@pytest.mark.parametrize("thresholds", THRESHOLDS)
@pytest.mark.parametrize("n_models", [16, 150])
def test_compiled_epsilons_on_distributions_as_they_occur(thresholds, n_models):
    """Equal, shifted, narrower, far from 0 and rounded; the number of right thresholds varies."""
    generator = np.random.default_rng(n_models)
    shift, scale = np.meshgrid([0, 0.5, 3, 12], [1, 0.2, 0.03])
    pair = (
        generator.normal(shift.ravel(), scale.ravel(), (n_models, 12)),
        generator.normal(0, 1, (n_models + 5, 12)),
    )
    for digits in (16, 2):
        rounded = tuple(x.round(digits) for x in pair)
        found = relabelled_epsilons(*rounded, thresholds=thresholds, n=3)
        expected, _ = permutation_null(
            *rounded, lambda x, y: unlearning.epsilon(x, y, thresholds=thresholds), n=3
        )
        np.testing.assert_array_equal(found, expected)


# Against chance


@pytest.mark.parametrize("thresholds", THRESHOLDS)
def test_it_is_the_null_of_epsilon_and_of_forgetting_quality(thresholds):
    unlearned, retrained = np.random.default_rng(5).normal(size=(2, 20, 6))
    unlearned[:, 0] += 4

    def epsilons(x, y):
        return unlearning.epsilon(x, y, thresholds=thresholds)

    def minus_quality(x, y):
        return -forgetting_quality(epsilons(x, y), 20)

    found = against_chance(unlearned, retrained, thresholds=thresholds, n=60, seed=4)
    null, p = permutation_null(unlearned, retrained, epsilons, 60, 4)
    np.testing.assert_array_equal(found.epsilon, epsilons(unlearned, retrained))
    np.testing.assert_array_equal(found.p, p)
    most = largest_epsilon(20)
    np.testing.assert_allclose(found.floor, np.minimum(null, most).mean(axis=0))
    np.testing.assert_allclose(found.floor + found.excess, np.minimum(found.epsilon, most))
    null, p = permutation_null(unlearned, retrained, minus_quality, 60, 4)
    assert found.quality == -minus_quality(unlearned, retrained)
    np.testing.assert_allclose(found.null_quality, -null)
    assert found.quality_p == p
    assert found.null_band[0] <= found.null_mean <= found.null_band[1]


def test_a_string_that_is_told_apart_is_found():
    """One of six; its p-value is the smallest of 400 relabellings, and it survives correction."""
    unlearned, retrained = np.random.default_rng(6).normal(size=(2, 32, 6))
    unlearned[:, 2] += 4
    found = against_chance(unlearned, retrained)
    assert found.p[2] == 1 / 401
    assert found.q[2] == pytest.approx(6 / 401)
    assert (found.q >= found.p).all()
    assert (np.delete(found.q, 2) > 0.05).all()
    assert found.excess.argmax() == 2


@pytest.mark.parametrize(("thresholds", "most"), [("exact", 0.12), ("grid", 0.12)])
def test_false_alarms_are_as_rare_as_the_p_values_say(thresholds, most):
    """150 null studies of correlated strings: at 5 %, more than 12 % has probability 0.0003."""
    chance = np.random.default_rng(8)
    alarms = []
    for seed in range(150):
        pair = chance.normal(size=(2, 16, 5)) + chance.normal(size=(2, 16, 1))
        found = against_chance(*pair, thresholds=thresholds, n=99, seed=seed)
        alarms.append([found.quality_p <= 0.05, (found.q <= 0.05).any()])
    assert (np.mean(alarms, axis=0) <= most).all()


def test_the_place_between_doing_nothing_and_retraining():
    assert relative_quality(0.02, 0.02, 0.1) == 0
    assert relative_quality(0.1, 0.02, 0.1) == 1
    assert relative_quality(0.04, 0.02, 0.1) == pytest.approx(0.25)
    assert np.isnan(relative_quality(0.04, 0.1, 0.1))
