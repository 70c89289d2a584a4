"""What must hold of the measures of memorisation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from palimpsest import memorisation

RULES = ("after_last_miss", "first_crossing")
NEVER = np.nan


@st.composite
def pairs_of_losses(draw):
    """Two float[epochs, strings] of one shape, few values apart, so that ties are common."""
    shape = draw(st.tuples(st.integers(1, 8), st.integers(1, 4)))
    values = st.one_of(st.sampled_from([0.0, 0.1, 0.2, 1.0]), st.floats(0, 10))
    return tuple(draw(arrays.arrays(float, shape, elements=values)) for _ in range(2))


def never_last(start):
    return np.where(np.isnan(start), np.inf, start)


def column(*values):
    return np.array(values, dtype=float)[:, None]


@given(losses=pairs_of_losses(), rule=st.sampled_from(RULES))
def test_contextual_never_precedes_counterfactual(losses, rule):
    """Lemma 1 under its assumption that training on a string never hurts its loss."""
    loss, loss_without = losses[0], np.maximum(*losses)
    assert memorisation.lemma_assumption_broken(loss, loss_without)[1] == 0
    contextual = memorisation.contextual(loss, loss_without, rule)
    counterfactual = memorisation.counterfactual(loss, loss_without, rule)
    assert (never_last(contextual.start) >= never_last(counterfactual.start)).all()
    assert (contextual.score <= counterfactual.score + 1e-12).all()


@given(losses=pairs_of_losses(), rule=st.sampled_from(RULES))
def test_the_lemma_holds_without_its_assumption(losses, rule):
    contextual = memorisation.contextual(*losses, rule)
    counterfactual = memorisation.counterfactual(*losses, rule)
    assert (never_last(contextual.start) >= never_last(counterfactual.start)).all()
    assert (contextual.score <= counterfactual.score + 1e-12).all()


@given(losses=pairs_of_losses(), rule=st.sampled_from(RULES))
def test_score_is_a_share_and_zero_before_the_start(losses, rule):
    for result in (
        memorisation.recollection(losses[0], 0.2, rule),
        memorisation.counterfactual(*losses, rule),
        memorisation.contextual(*losses, rule),
        memorisation.bayes(losses[0], losses[1][0], rule),
    ):
        epochs = np.arange(len(losses[0]))[:, None]
        assert ((result.score >= 0) & (result.score <= 1)).all()
        assert (result.score[epochs < never_last(result.start)] == 0).all()
        assert (result.memorised == (result.score > 0)).all()
        started = np.flatnonzero(np.isfinite(result.start))
        assert (result.score[result.start[started].astype(int), started] > 0).all()


@given(losses=pairs_of_losses())
def test_after_the_last_miss_everything_is_memorised(losses):
    result = memorisation.counterfactual(*losses)
    expected = np.arange(len(losses[0]))[:, None] >= never_last(result.start)
    assert (result.memorised == expected).all()


@given(losses=pairs_of_losses(), factor=st.sampled_from([0.5, 2.0, 1024.0]))
def test_the_unit_of_the_loss_does_not_matter(losses, factor):
    """Powers of two scale floating-point numbers exactly (except the very smallest)."""
    loss, loss_without = (np.where(x < 1e-100, 0, x) for x in losses)
    for measure in (memorisation.counterfactual, memorisation.contextual):
        one, other = measure(loss, loss_without), measure(factor * loss, factor * loss_without)
        np.testing.assert_array_equal(one.start, other.start)
        np.testing.assert_array_equal(one.score, other.score)


@given(losses=pairs_of_losses(), data=st.data())
def test_strings_are_measured_one_by_one(losses, data):
    order = data.draw(st.permutations(range(losses[0].shape[1])))
    whole = memorisation.contextual(*losses)
    permuted = memorisation.contextual(*(loss[:, order] for loss in losses))
    np.testing.assert_array_equal(permuted.start, whole.start[order])
    np.testing.assert_array_equal(permuted.score, whole.score[:, order])


@given(losses=pairs_of_losses())
def test_the_first_crossing_is_never_after_the_last_miss(losses):
    later = memorisation.counterfactual(*losses, "after_last_miss").start
    earlier = memorisation.counterfactual(*losses, "first_crossing").start
    assert (never_last(earlier) <= never_last(later)).all()


@pytest.mark.parametrize(
    ("losses", "rule", "start", "score"),
    [
        # Dips below the threshold of 0.2 once, comes back, then stays.
        ((0.9, 0.1, 0.3, 0.1, 0.0), "after_last_miss", 3, (0, 0, 0, 1, 1)),
        ((0.9, 0.1, 0.3, 0.1, 0.0), "first_crossing", 1, (0, 1, 0, 1, 1)),
        # On the threshold is not below it.
        ((0.9, 0.2, 0.1), "after_last_miss", 2, (0, 0, 1)),
        # A miss at the last epoch: memorised once, but no start that lasts.
        ((0.9, 0.1, 0.3), "after_last_miss", NEVER, (0, 0, 0)),
        ((0.9, 0.1, 0.3), "first_crossing", 1, (0, 1, 0)),
        ((0.9, 0.8, 0.7), "first_crossing", NEVER, (0, 0, 0)),
        ((0.1, 0.1), "after_last_miss", 0, (1, 1)),
        ((0.1, 0.1), "first_crossing", 0, (1, 1)),
    ],
)
def test_recollection_by_hand(losses, rule, start, score):
    result = memorisation.recollection(column(*losses), 0.2, rule)
    np.testing.assert_array_equal(result.start, [start])
    np.testing.assert_array_equal(result.score, column(*score))


def test_counterfactual_and_contextual_by_hand():
    """The losses part at epoch 1; only at epoch 3 is the loss below the best without, 0.5."""
    loss, loss_without = column(1.0, 0.7, 0.6, 0.25), column(1.0, 0.8, 0.5, 1.0)
    counterfactual = memorisation.counterfactual(loss, loss_without, "first_crossing")
    assert counterfactual.start == [1]
    np.testing.assert_allclose(counterfactual.score, column(0, 0.125, 0, 0.75))
    assert memorisation.counterfactual(loss, loss_without).start == [3]
    contextual = memorisation.contextual(loss, loss_without)
    assert contextual.start == [3]
    np.testing.assert_allclose(contextual.score, column(0, 0, 0, 0.5))
    np.testing.assert_array_equal(contextual.threshold, column(0.5, 0.5, 0.5, 0.5))
    np.testing.assert_array_equal(counterfactual.threshold, loss_without)


def test_bayes_has_a_threshold_per_string():
    result = memorisation.bayes([[1.0, 1.0], [0.5, 0.5]], [0.4, 1.0])
    np.testing.assert_array_equal(result.start, [NEVER, 1])
    np.testing.assert_allclose(result.score, [[0, 0], [0, 0.5]])


def test_recollection_by_accuracy_wants_more_than_the_threshold():
    accuracy = column(0.5, 0.95, 1.0)
    assert memorisation.recollection(1 - accuracy, 1 - 0.95).start == [2]


@pytest.mark.filterwarnings("error")
def test_a_threshold_of_zero_is_never_undercut():
    loss = np.zeros((3, 2))
    for result in (
        memorisation.recollection(loss, 0.0),
        memorisation.contextual(loss, loss),
        memorisation.bayes(loss, [0.0, 0.0]),
    ):
        assert np.isnan(result.start).all()
        assert not result.score.any()


def test_broken_assumption_is_counted_per_string_and_overall():
    loss, loss_without = np.array([[1, 1], [0.6, 0.5]]), np.array([[1, 0.9], [0.5, 0.5]])
    per_string, overall = memorisation.lemma_assumption_broken(loss, loss_without)
    np.testing.assert_array_equal(per_string, [0.5, 0.5])
    assert overall == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: memorisation.contextual(np.ones((3, 2)), np.ones((3, 1))), "same shape"),
        (lambda: memorisation.counterfactual(np.ones((3, 2)), np.ones((2, 2))), "same shape"),
        (lambda: memorisation.counterfactual(np.ones(3), np.ones(3)), r"\[epochs, strings\]"),
        (lambda: memorisation.recollection(np.ones((0, 2)), 0.2), "at least one epoch"),
        (lambda: memorisation.recollection(np.ones((3, 2)), [0.2, 0.3]), "one threshold"),
        (lambda: memorisation.recollection(-np.ones((3, 2)), 0.2), "not negative"),
        (lambda: memorisation.recollection(np.ones((3, 2)), np.nan), "finite"),
        (lambda: memorisation.recollection(np.full((3, 2), np.inf), 0.2), "finite"),
        (lambda: memorisation.bayes(np.ones((3, 2)), np.ones(3)), "one value per string"),
        (lambda: memorisation.recollection(np.ones((3, 2)), 0.2, "never"), "known: after_last"),
        (
            lambda: memorisation.lemma_assumption_broken(np.ones((3, 2)), np.ones((3, 3))),
            "same shape",
        ),
    ],
)
def test_errors_say_what_is_wrong(call, message):
    with pytest.raises(ValueError, match=message):
        call()
