"""Membership inference, against independent implementations and by hand."""

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import mannwhitneyu
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from palimpsest.unlearning.attacks.membership import (
    FOLDS,
    auc,
    folds,
    logistic_regressions,
    membership_accuracy,
    privleak,
    zlib_bytes,
)


def test_auc_by_hand():
    """Hanley and McNeil 1982: of six pairs, the member has more in 4 and equally much in 1."""
    assert auc(np.array([[3.0, 1.0]]), np.array([[2.0, 1.0, 0.0]])) == pytest.approx([4.5 / 6])
    assert auc(np.zeros((1, 3)), np.zeros((1, 5))) == [0.5]
    assert np.isnan(auc(np.zeros((2, 0)), np.zeros((2, 5)))).all()


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 10**6), st.integers(1, 12), st.integers(1, 12), st.sampled_from([0, 1, 9]))
def test_auc_is_scikit_learns_and_scipys(seed, n, m, decimals):
    chance = np.random.default_rng(seed)
    members = chance.normal(0.5, 1, (4, n)).round(decimals)
    others = chance.normal(size=(4, m)).round(decimals)
    labels = np.arange(n + m) < n
    both = np.concatenate([members, others], axis=1)
    np.testing.assert_allclose(
        auc(members, others), [roc_auc_score(labels, scores) for scores in both]
    )
    u = [mannwhitneyu(*pair).statistic for pair in zip(members, others, strict=True)]
    np.testing.assert_allclose(auc(members, others), np.array(u) / (n * m))


def test_zlib_counts_bytes():
    texts = ["", "a b c", "ä" * 50]
    expected = [len(zlib.compress(text.encode("utf-8"))) for text in texts]
    np.testing.assert_array_equal(zlib_bytes(texts), expected)


def test_privleak_by_hand():
    """PrivLeak of MUSE (Shi et al. 2024): (AUC unlearned - AUC retrained) / AUC retrained.

    It is the AUC of non-members. Members are found in 90 % of pairs, in retrained models in 60 %:
    (0.1 - 0.4) / 0.4.
    """
    found = privleak(np.array([0.85, 0.95]), np.array([0.5, 0.7]))
    assert found.mean == pytest.approx(-0.75)
    assert privleak(np.array([0.2]), np.array([0.5])).mean == pytest.approx(0.6)
    assert privleak(np.array([0.3, 0.5]), np.array([0.3, 0.5])).mean == pytest.approx(0)


def test_the_interval_of_privleak_by_hand():
    """Student's with 1 degree of freedom: 12.706 standard errors of log 0.1 - log 0.4."""
    found = privleak(np.array([0.89, 0.91]), np.array([0.59, 0.61]))
    error = np.sqrt((0.01 / 0.1) ** 2 + (0.01 / 0.4) ** 2)
    ends = np.log((np.array(found[1:]) + 1) / 0.25) / error
    assert ends == pytest.approx([-12.7062, 12.7062], abs=1e-4)


def test_privleak_without_an_interval_or_a_value():
    assert privleak(np.ones(3), np.array([0.4, 0.5])) == pytest.approx(
        (-1, np.nan, np.nan), nan_ok=True
    )
    for unlearned, retrained in (([0.5, 0.5], [1, 1]), ([], [0.5]), ([0.5], [])):
        found = privleak(np.array(unlearned), np.array(retrained))
        assert np.isnan(found).all()


def test_the_interval_of_privleak_holds_the_truth():
    """True means 0.7 and 0.5: PrivLeak -0.4. Of 500 studies, 95 % +- 3 %."""
    chance = np.random.default_rng(0)
    inside = 0
    for _ in range(500):
        found = privleak(chance.beta(7, 3, 32), chance.beta(5, 5, 32))
        inside += found.lower <= -0.4 <= found.upper
    assert 0.92 <= inside / 500 <= 0.98


@pytest.mark.parametrize(("n_forget", "n_test"), [(4, 30), (12, 21), (30, 11)])
def test_regressions_are_scikit_learns(n_forget, n_test):
    """Also for an outlier, where full steps of Newton's method go too far."""
    chance = np.random.default_rng(n_test)
    x = chance.normal(size=(5, n_forget + n_test))
    is_member = np.arange(n_forget + n_test) < n_forget
    x[:, is_member] += 1
    x[0, 0], x[1, -1] = -60, 60
    fitted = logistic_regressions(x, is_member)
    for row, found in zip(x, fitted, strict=True):
        model = LogisticRegression(class_weight="balanced", tol=1e-10, max_iter=10**4)
        model.fit(row[:, None], is_member)
        expected = model.coef_[0, 0], model.intercept_[0]
        np.testing.assert_allclose(found, expected, atol=1e-5)


def attacked(loss, is_forget, fold):
    """Balanced accuracy of scikit-learn's regressions on the held-out strings of every fold."""
    accuracy = []
    for one in np.unique(fold):
        held = fold == one
        centre, scale = loss[~held].mean(), loss[~held].std()
        model = LogisticRegression(class_weight="balanced", tol=1e-10, max_iter=10**4)
        model.fit((loss[~held, None] - centre) / scale, is_forget[~held])
        right = model.predict((loss[held, None] - centre) / scale) == is_forget[held]
        of_kinds = [right[is_forget[held] == kind].mean() for kind in (True, False)]
        accuracy.append(np.mean(of_kinds))
    return np.mean(accuracy)


@pytest.mark.parametrize(("n_forget", "n_test"), [(4, 30), (12, 21), (30, 11)])
def test_membership_is_by_balanced_logistic_regression(n_forget, n_test):
    """Are we making progress in unlearning?, A.11: a classifier of the losses of the two sets."""
    chance = np.random.default_rng(n_test)
    forget, test = chance.normal(5, 1, (3, n_forget)), chance.normal(6, 2, (3, n_test))
    is_forget = np.arange(n_forget + n_test) < n_forget
    fold = folds(n_forget, n_test)
    both = np.concatenate([forget, test], axis=1)
    expected = [attacked(loss, is_forget, fold) for loss in both]
    np.testing.assert_allclose(membership_accuracy(forget, test), expected)


@pytest.mark.parametrize(("n_forget", "n_test"), [(2, 30), (9, 40), (100, 10)])
def test_every_fold_has_strings_of_both_sets(n_forget, n_test):
    fold = folds(n_forget, n_test)
    n_folds = min(FOLDS, n_forget, n_test)
    for part in (fold[:n_forget], fold[n_forget:]):
        counts = np.bincount(part)
        assert len(counts) == n_folds
        assert np.ptp(counts) <= 1


def test_membership_of_sets_that_are_apart_and_of_sets_that_are_not():
    chance = np.random.default_rng(0)
    low, high = chance.normal(1, 0.1, (3, 12)), chance.normal(3, 0.1, (3, 40))
    np.testing.assert_array_equal(membership_accuracy(low, high), 1)
    np.testing.assert_array_equal(membership_accuracy(-low, -high), 1)
    same = membership_accuracy(chance.normal(size=(30, 12)), chance.normal(size=(30, 40)))
    assert same.mean() == pytest.approx(0.5, abs=0.07)
    assert same.std() > 0


def test_membership_of_constant_losses_is_chance():
    np.testing.assert_array_equal(membership_accuracy(np.ones((2, 5)), np.ones((2, 9))), 0.5)


def test_membership_does_not_depend_on_the_other_models():
    chance = np.random.default_rng(0)
    forget, test = chance.normal(size=(6, 12)), chance.normal(0.5, 1, size=(6, 20))
    together = membership_accuracy(forget, test)
    alone = [membership_accuracy(forget[[i]], test[[i]])[0] for i in range(6)]
    np.testing.assert_allclose(together, alone)


@pytest.mark.parametrize(("n_forget", "defined"), [(1, False), (2, True), (3, True)])
def test_membership_of_tiny_sets(n_forget, defined):
    chance = np.random.default_rng(0)
    found = membership_accuracy(chance.normal(size=(3, n_forget)), chance.normal(size=(3, 30)))
    assert np.isfinite(found).all() == defined
