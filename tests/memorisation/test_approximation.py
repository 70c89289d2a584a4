"""What must hold of the strings that stand in for a training string."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.errors import UserError
from palimpsest.memorisation import stand_ins
from palimpsest.memorisation.approximation import TIE, candidates, median_of_others

log_probs = st.lists(
    st.one_of(st.integers(-8, 0).map(float), st.floats(-40, 0)), min_size=1, max_size=12
)


def naive_median(train, test, loss):
    """The definition, string by string."""
    medians = np.empty((len(loss), len(train)))
    for i, log_prob in enumerate(train):
        distance = np.abs(np.asarray(test) - log_prob)
        tied = distance <= distance.min() + TIE * max(1.0, abs(log_prob))
        for epoch in range(len(loss)):
            medians[epoch, i] = np.median(loss[epoch, tied])
    return medians


@given(train=log_probs, test=log_probs, seed=st.integers(0, 99))
def test_agrees_with_the_definition(train, test, seed):
    loss = np.random.default_rng(seed).random((3, len(test)))
    chosen = stand_ins(train, test)
    np.testing.assert_array_equal(chosen.median(loss), naive_median(train, test, loss))
    distance = np.abs(np.subtract.outer(np.array(train), np.array(test)))
    np.testing.assert_array_equal(chosen.gap, distance.min(axis=1))


def test_by_hand():
    """-1 has itself, twice; -3 lies midway between -2 and -4; -9 has only -4, 5 nats away."""
    test = [-4.0, -1.0, -2.0, -1.0]
    chosen = stand_ins([-1.0, -3.0, -9.0], test)
    assert [sorted(chosen.members(i)) for i in range(3)] == [[1, 3], [0, 2], [0]]
    np.testing.assert_array_equal(chosen.gap, [0, 1, 5])
    loss = np.array([[8.0, 1.0, 4.0, 3.0], [0.0, 1.0, 1.0, 1.0]])
    np.testing.assert_array_equal(chosen.median(loss), [[2, 6, 8], [1, 0.5, 0]])


def test_rounding_makes_no_difference_of_frequency():
    """All strings of a uniform language are equally frequent, whatever the last digit."""
    noise = 1e-13 * np.random.default_rng(0).standard_normal(50)
    chosen = stand_ins(-24.953 - noise[:10], -24.953 + noise)
    assert all(len(chosen.members(i)) == 50 for i in range(10))


@given(train=log_probs, test=log_probs, seed=st.integers(0, 99))
def test_the_order_of_the_test_strings_does_not_matter(train, test, seed):
    generator = np.random.default_rng(seed)
    loss = generator.random((2, len(test)))
    order = generator.permutation(len(test))
    np.testing.assert_array_equal(
        stand_ins(train, np.array(test)[order]).median(loss[:, order]),
        stand_ins(train, test).median(loss),
    )


@given(
    test=st.lists(st.integers(-8, 0).map(float), min_size=2, max_size=12), seed=st.integers(0, 99)
)
def test_an_unseen_string_is_measured_against_the_others_only(test, seed):
    """The string's own loss does not count; the definition chooses the other strings."""
    test = np.array(test)
    loss = np.random.default_rng(seed).random((3, len(test)))
    medians = median_of_others(test, loss)
    for i in range(len(test)):
        kept = np.arange(len(test)) != i
        expected = naive_median(test[[i]], test[kept], loss[:, kept])[:, 0]
        np.testing.assert_array_equal(medians[:, i], expected)
        changed = loss.copy()
        changed[:, i] = 99.0
        np.testing.assert_array_equal(median_of_others(test, changed)[:, i], expected)


def test_others_by_hand():
    """The two strings of -1 stand in for each other, and both for -2; -4 has -2."""
    loss = np.array([[8.0, 1.0, 4.0, 3.0]])
    medians = median_of_others(np.array([-4.0, -1.0, -2.0, -1.0]), loss)
    np.testing.assert_array_equal(medians, [[4, 3, 2, 1]])
    with pytest.raises(UserError, match="no unseen test string"):
        median_of_others(np.array([-1.0]), np.array([[1.0]]))


def test_seen_and_held_out_strings_are_no_candidates():
    strings = pd.DataFrame(
        {
            "split": ["test", "test", "train", "held_out", "test"],
            "count": [0, 1, 2, 0, 0],
            "test_count": 1,
        }
    )
    np.testing.assert_array_equal(candidates(strings), [True, False, False, False, True])


def test_no_candidate_is_an_error_with_a_remedy():
    with pytest.raises(UserError, match="larger test set, a smaller training size"):
        stand_ins([-1.0], [])


def test_strings_outside_the_language_have_no_frequency():
    with pytest.raises(ValueError, match="outside the language"):
        stand_ins([-np.inf], [-1.0])
