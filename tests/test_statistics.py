"""Intervals against closed forms and against their error rates, and rank associations."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from palimpsest.statistics import jackknife, rank_association, student, student_of_splits

VALUES = [0.2, 0.5, 0.3, 0.9]


def test_the_interval_is_student_s():
    expected = stats.t.interval(0.95, 3, np.mean(VALUES), stats.sem(VALUES))
    np.testing.assert_allclose(student(VALUES), [np.mean(VALUES), *expected])
    expected = stats.t.interval(0.99, 3, np.mean(VALUES), stats.sem(VALUES))
    np.testing.assert_allclose(student(VALUES, confidence=0.99)[1:], expected)


def test_one_value_or_none_has_no_interval():
    np.testing.assert_array_equal(student([0.3]), [0.3, np.nan, np.nan])
    assert np.isnan(student([])).all()
    np.testing.assert_array_equal(student_of_splits([0.3], 1), [0.3, np.nan, np.nan])


def test_rounded_values_are_not_told_apart_by_their_last_digit():
    assert student([0.1 + 0.2 - 0.2] * 3, decimals=12) == (0.1, 0.1, 0.1)


def test_splits_of_one_sample_are_corrected():
    """The variance s² / n becomes s² (1 / n + ratio)."""
    mean, lower, upper = student_of_splits(VALUES, 0.5)
    reach = stats.t.ppf(0.975, 3) * np.std(VALUES, ddof=1) * np.sqrt(1 / 4 + 0.5)
    np.testing.assert_allclose([mean - lower, upper - mean], reach)
    np.testing.assert_allclose(student_of_splits(VALUES, 0), student(VALUES))


def test_splits_without_spread_are_no_certainty():
    np.testing.assert_array_equal(student_of_splits([0.0] * 10, 1), [0, np.nan, np.nan])


def test_the_jackknife_of_a_mean_is_student_s():
    values = np.array(VALUES)
    np.testing.assert_allclose(jackknife(lambda items: values[items].mean(), 4), student(VALUES))


@pytest.mark.parametrize(
    ("statistic", "n"),
    [
        (lambda items: 1.0, 9),
        (lambda items: float(len(items)), 2),
        (lambda items: np.nan if 3 not in items else 0.5 * items.sum(), 9),
    ],
    ids=["at a ceiling", "of two items", "undefined without one of them"],
)
def test_the_jackknife_has_no_interval(statistic, n):
    found = jackknife(statistic, n)
    assert found.mean == statistic(np.arange(n))
    assert np.isnan(found[1:]).all()


def test_the_jackknife_of_a_mean_over_pairs_is_right_19_times_of_20():
    """Kendall's tau of 15 independent pairs of numbers, whose expectation is known."""
    rng = np.random.default_rng(0)
    missed = 0
    for _ in range(400):
        x = rng.standard_normal(15)
        y = x + rng.standard_normal(15)
        found = jackknife(lambda items, x=x, y=y: rank_association(x[items], y[items]), 15)
        expected = 2 / np.pi * np.arcsin(np.sqrt(0.5))
        missed += not found.lower <= expected <= found.upper
    assert 0.02 <= missed / 400 <= 0.09


@given(
    pairs=st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=2, max_size=12).filter(
        lambda pairs: all(len(set(values)) > 1 for values in zip(*pairs, strict=True))
    )
)
def test_rank_association_is_somers_d(pairs):
    x, y = np.array(pairs).T
    assert rank_association(x, y) == pytest.approx(stats.somersd(x, y).statistic)


def test_rank_association_of_strings_that_never_start():
    assert rank_association([3, 2, 1], [-1, -np.inf, -np.inf]) == pytest.approx(2 / 3)
    assert rank_association([3, 2, 1], [-np.inf, -np.inf, -np.inf]) == 0
    assert np.isnan(rank_association([1, 1], [1, 2]))
