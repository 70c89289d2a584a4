"""What must hold of the strings that stand in for a training string."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from palimpsest.datasets.choices import candidates
from palimpsest.errors import UserError
from palimpsest.memorisation import stand_ins
from palimpsest.memorisation.approximation import TIE, loss_of_others

optimal_losses = st.lists(
    st.one_of(st.integers(0, 8).map(float), st.floats(0, 40)), min_size=1, max_size=12
)
ANY = np.inf  # a gap that leaves no string without stand-ins


def naive_loss(train, unseen, loss):
    """The definition, string by string."""
    found = np.empty((len(loss), len(train)))
    unseen = np.asarray(unseen)
    for i, optimal in enumerate(train):
        distance = np.abs(unseen - optimal)
        tied = distance <= distance.min() + TIE * max(1.0, abs(optimal))
        for epoch in range(len(loss)):
            beyond = np.median(loss[epoch, tied] - unseen[tied])
            found[epoch, i] = max(beyond + optimal, 0)
    return found


@given(train=optimal_losses, unseen=optimal_losses, seed=st.integers(0, 99))
def test_agrees_with_the_definition(train, unseen, seed):
    loss = np.random.default_rng(seed).random((3, len(unseen)))
    chosen = stand_ins(train, unseen, np.full(len(train), 3), ANY)
    np.testing.assert_array_equal(chosen.loss(loss), naive_loss(train, unseen, loss))
    distance = np.abs(np.subtract.outer(np.array(train), np.array(unseen)))
    np.testing.assert_array_equal(chosen.gap, 3 * distance.min(axis=1))


def test_by_hand():
    """1 has itself, twice; 3 lies midway between 2 and 4; 9 has only 4, 5 nats per token away."""
    unseen = [4.0, 1.0, 2.0, 1.0]
    chosen = stand_ins([1.0, 3.0, 9.0], unseen, [10, 10, 2], ANY)
    assert [sorted(chosen.members(i)) for i in range(3)] == [[1, 3], [0, 2], [0]]
    np.testing.assert_array_equal(chosen.gap, [0, 10, 10])
    loss = np.array([[8.0, 1.0, 4.0, 3.0], [4.0, 1.0, 1.0, 2.0]])
    # Beyond the optimal loss: 4, 0, 2, 2 and 0, 0, -1, 1.
    np.testing.assert_array_equal(chosen.loss(loss), [[2, 6, 13], [1.5, 2.5, 9]])


def test_a_string_that_is_too_far_away_has_no_stand_in():
    """The gap counts over all tokens of the training string: a long string needs a nearer one."""
    chosen = stand_ins([1.0, 1.0, 1.5], [1.05], [9, 11, 1], largest_gap=0.5)
    np.testing.assert_allclose(chosen.gap, [0.45, 0.55, 0.45])
    assert chosen.exist.tolist() == [True, False, True]
    np.testing.assert_allclose(chosen.loss(np.array([[2.05]])), [[2.0, np.nan, 2.5]])


@given(train=optimal_losses, unseen=optimal_losses)
def test_a_perfect_learner_is_never_below_its_stand_ins(train, unseen):
    """Its loss on every string is the Bayes-optimal loss, and it memorised nothing."""
    chosen = stand_ins(train, unseen, np.full(len(train), 72), ANY)
    np.testing.assert_array_equal(chosen.loss(np.array([unseen]))[0], train)


def test_a_stand_in_below_its_optimal_loss_gives_no_negative_loss():
    chosen = stand_ins([0.1], [0.5], [1], ANY)
    np.testing.assert_array_equal(chosen.loss(np.array([[0.0]])), [[0.0]])


def test_rounding_makes_no_difference_of_frequency():
    """All strings of a uniform language are equally frequent, whatever the last digit."""
    noise = 1e-13 * np.random.default_rng(0).standard_normal(50)
    chosen = stand_ins(0.347 - noise[:10], 0.347 + noise, np.full(10, 72))
    assert all(len(chosen.members(i)) == 50 for i in range(10))


@given(train=optimal_losses, unseen=optimal_losses, seed=st.integers(0, 99))
def test_the_order_of_the_unseen_strings_does_not_matter(train, unseen, seed):
    generator = np.random.default_rng(seed)
    loss = generator.random((2, len(unseen)))
    order = generator.permutation(len(unseen))
    n_tokens = np.full(len(train), 5)
    np.testing.assert_array_equal(
        stand_ins(train, np.array(unseen)[order], n_tokens).loss(loss[:, order]),
        stand_ins(train, unseen, n_tokens).loss(loss),
    )


@given(
    unseen=st.lists(st.integers(0, 8).map(float), min_size=2, max_size=12), seed=st.integers(0, 99)
)
def test_an_unseen_string_is_measured_against_the_others_only(unseen, seed):
    """The string's own loss does not count; the definition chooses the other strings."""
    unseen = np.array(unseen)
    n_tokens = np.full(len(unseen), 4)
    loss = np.random.default_rng(seed).random((3, len(unseen)))
    found = loss_of_others(loss, unseen, n_tokens, ANY)
    for i in range(len(unseen)):
        kept = np.arange(len(unseen)) != i
        expected = naive_loss(unseen[[i]], unseen[kept], loss[:, kept])[:, 0]
        np.testing.assert_array_equal(found[:, i], expected)
        changed = loss.copy()
        changed[:, i] = 99.0
        np.testing.assert_array_equal(
            loss_of_others(changed, unseen, n_tokens, ANY)[:, i], expected
        )


def test_others_by_hand():
    """The two strings of 1 stand in for each other, and both for 2; 4 has 2."""
    loss, optimal = np.array([[8.0, 1.0, 4.0, 3.0]]), np.array([4.0, 1.0, 2.0, 1.0])
    found = loss_of_others(loss, optimal, np.ones(4), ANY)
    np.testing.assert_array_equal(found, [[6, 3, 3, 1]])
    # Only the two equal strings are near enough.
    near = loss_of_others(loss, optimal, np.ones(4), 0.5)
    np.testing.assert_array_equal(near, [[np.nan, 3, np.nan, 1]])
    with pytest.raises(UserError, match="no unseen string"):
        loss_of_others(np.array([[1.0]]), np.array([1.0]), np.ones(1))


def test_seen_and_held_out_strings_are_no_candidates():
    strings = pd.DataFrame(
        {
            "split": ["test", "test", "train", "held_out", "stand_in"],
            "count": [0, 1, 2, 0, 0],
            "test_count": 1,
        }
    )
    np.testing.assert_array_equal(candidates(strings), [True, False, False, False, True])


def test_no_candidate_is_an_error_with_a_remedy():
    with pytest.raises(UserError, match="set datasets/split to disjoint, or use a larger test"):
        stand_ins([1.0], [], [1])


def test_strings_outside_the_language_have_no_frequency():
    with pytest.raises(ValueError, match="outside the language"):
        stand_ins([np.inf], [1.0], [1])


def test_the_mean_over_the_stand_ins_leaves_out_unknown_values():
    """The first string has two stand-ins, the second one, the third none; values of unseen."""
    found = stand_ins([0.2, 0.5, 0.9], [0.5, 0.2, 0.2], [10, 10, 10])
    np.testing.assert_allclose(found.mean_of(np.array([1.0, 0.0, 0.5])), [0.25, 1.0, np.nan])
    np.testing.assert_allclose(found.mean_of(np.array([np.nan, np.nan, 0.5])), [0.5, *[np.nan] * 2])
