"""Intervals against closed forms and against their error rates, and rank associations."""

import math
from itertools import permutations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from palimpsest.statistics import (
    SIGN_LEVEL,
    holm,
    is_constant,
    median_interval,
    order_p_value,
    pair_order,
    power,
    rank_association,
    rounding_error,
    sample_size,
    student,
    student_p_value,
    with_exact_ties,
)

VALUES = [0.2, 0.5, 0.3, 0.9]


def test_the_interval_is_student_s():
    expected = stats.t.interval(0.95, 3, np.mean(VALUES), stats.sem(VALUES))
    np.testing.assert_allclose(student(VALUES), [np.mean(VALUES), *expected])
    expected = stats.t.interval(0.99, 3, np.mean(VALUES), stats.sem(VALUES))
    np.testing.assert_allclose(student(VALUES, confidence=0.99)[1:], expected)


def test_one_value_or_none_has_no_interval():
    np.testing.assert_array_equal(student([0.3]), [0.3, np.nan, np.nan])
    assert np.isnan(student([])).all()


def test_rounded_values_are_not_told_apart_by_their_last_digit():
    assert student([0.1 + 0.2 - 0.2] * 3, decimals=12) == (0.1, 0.1, 0.1)


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


def test_the_p_value_is_of_the_t_test():
    expected = stats.ttest_1samp(VALUES, 0.1).pvalue
    assert student_p_value(VALUES, 0.1) == pytest.approx(expected)
    assert student_p_value(VALUES, np.mean(VALUES)) == 1
    lower = student(VALUES).lower
    assert student_p_value(VALUES, lower) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("values", "bound"), [([0.3], 0.1), ([], 0.1), ([0.2] * 3, 0.1), (VALUES, np.nan)]
)
def test_without_spread_or_bound_there_is_no_test(values, bound):
    assert np.isnan(student_p_value(values, bound))
    assert np.isnan(sample_size(values, bound))


def test_the_sample_size_is_the_fewest_values_that_exclude_the_bound():
    """A far bound needs fewer values than there are; a mean on the bound needs too many."""
    n = int(sample_size(VALUES, 0.3))
    assert n > len(VALUES)
    spread = np.std(VALUES, ddof=1)
    reach = [stats.t.ppf(0.975, m - 1) * spread / np.sqrt(m) for m in (n - 1, n)]
    assert reach[0] >= np.mean(VALUES) - 0.3 > reach[1]
    assert sample_size(VALUES, -100.0) == 2
    assert np.isnan(sample_size(VALUES, np.mean(VALUES)))


def test_holm_is_that_of_statsmodels():
    """Printed by multipletests(method="holm") of statsmodels 0.15.0, without the NaN."""
    p_values = [0.01, np.nan, 0.04, 0.03, 0.005, 0.03, np.nan, 0.9]
    expected = [0.05, np.nan, 0.12, 0.12, 0.03, 0.12, np.nan, 0.9]
    np.testing.assert_allclose(holm(p_values), expected)
    np.testing.assert_array_equal(holm([np.nan]), [np.nan])
    assert holm([]).shape == (0,)


@given(p_values=st.lists(st.one_of(st.floats(0, 1), st.just(np.nan)), max_size=12))
def test_holm_steps_down(p_values):
    """The definition: smallest first, p-values are compared with level / (number left)."""
    corrected, tests = holm(p_values), sorted(p for p in p_values if not np.isnan(p))
    for level in (0.01, 0.05, 0.5):
        n_rejected = next(
            (k for k, p in enumerate(tests) if p * (len(tests) - k) > level), len(tests)
        )
        assert (corrected <= level).sum() == n_rejected
    np.testing.assert_array_equal(np.isnan(corrected), np.isnan(p_values))


# Constant up to rounding

POWERS = st.integers(-100, 100)


def rounded_copies(value, n, seed):
    """Numbers that would be `value` without rounding: sums in other orders, and back."""
    parts = np.random.default_rng(seed).normal(size=(n, 50)) * value
    return np.array([value + math.fsum(own) - own.sum() for own in parts])


@given(st.floats(1e-3, 1e3), st.integers(2, 40), st.integers(0, 2**32), POWERS)
def test_sums_in_other_orders_are_constant(value, n, seed, power):
    values = rounded_copies(value, n, seed) * 10.0**power
    assert is_constant(values)
    assert np.ptp(with_exact_ties(values)) == 0
    assert student(values).lower == student(values).upper
    assert np.isnan(student_p_value(values, 2 * values[0]))
    assert not pair_order(values).any()


@pytest.mark.parametrize("stored", [np.float16, np.float32])
def test_short_floats_differ_by_their_own_rounding(stored):
    """0.7 - 0.4 in a short type is not the nearest number to 0.3; twice the next one is another."""
    equal = np.array([stored(0.3), stored(0.7) - stored(0.4)])
    assert equal.dtype == stored
    assert equal[0] != equal[1]
    assert np.ptp(with_exact_ties(equal)) == 0
    assert np.ptp(with_exact_ties(equal.astype(float))) > 0
    other = np.array([0.3, 0.4], dtype=stored)
    assert with_exact_ties(other).tolist() == other.astype(float).tolist()


@given(
    st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=30),
    st.integers(-(10**5), 10**5),
    POWERS,
)
def test_other_numbers_are_as_they_were(whole, shift, power):
    """Whole numbers times a power of ten differ by more than rounding unless they are equal."""
    values = (np.array(whole) + shift) * 10.0**power
    assert is_constant(values) == (len(set(whole)) == 1)
    assert with_exact_ties(values).tobytes() == values.tobytes()
    plain = np.sign(np.subtract.outer(np.array(whole), np.array(whole)))
    np.testing.assert_array_equal(pair_order(values), plain)
    if len(set(whole)) > 1:
        mean, lower, upper = student(values)
        reach = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
        np.testing.assert_allclose([lower, upper], [mean - reach, mean + reach], rtol=1e-9)


def test_differences_are_held_against_what_was_subtracted():
    before = np.linspace(2e5, 1e6, 30)
    change = (before + 0.1) - before
    assert not is_constant(change)
    assert is_constant(change, magnitude=before.max())
    assert not is_constant(change + np.linspace(0, 1e-3, 30), magnitude=before.max())


def test_columns_are_looked_at_alone():
    values = np.array([[0.1, 1.0, np.nan, np.inf, 5.0], [0.3 - 0.2, 2.0, 1.0, np.inf, 5.0]])
    assert is_constant(values).tolist() == [True, False, False, False, True]
    assert is_constant(values[:1]).tolist() == [True] * 5
    assert is_constant(np.zeros((0, 2))).tolist() == [True, True]
    assert is_constant(np.array([True, True]))
    assert not is_constant([-1e308, 1e308])


def test_rounding_that_straddles_a_decimal_is_still_rounding():
    values = [0.1000000000025, 0.10000000000250002, 0.1000000000025]
    assert np.ptp(np.round(values, 12)) > 0
    assert np.isnan(student_p_value(values, 0.1))
    assert np.isnan(sample_size(values, 0.1))


def test_single_precision_is_held_against_its_own_rounding():
    values = np.float32([1, 1, 1 + 2**-22])
    assert is_constant(values, n_terms=1)
    assert not is_constant(values.astype(float), n_terms=1)
    assert rounding_error(1.0, 3) == 3 * rounding_error(1.0, 1)


def test_ties_up_to_rounding_are_ties_of_ranks():
    x = [1, 2, 3, 4]
    y = [0.1 + 0.2, 0.3, 0.6 - 0.3, 0.7]
    assert len(set(y)) > 2
    assert rank_association(x, y) == rank_association(x, [0.3, 0.3, 0.3, 0.7])
    assert np.isnan(rank_association(y[:3], [1, 2, 3]))
    # Small numbers beside large ones are not rounding.
    assert pair_order([1e-20, 2e-20, 1.0])[0].tolist() == [0, -1, -1]
    infinite = [np.inf, np.inf, -np.inf, 1.0]
    np.testing.assert_array_equal(with_exact_ties(infinite), infinite)


def by_counting(x, y, region):
    """The p-value of an order, from all combinations of orders in all samples."""
    known = sum(rank_association(a, b) for a, b in zip(x, y, strict=True))
    sums = np.array(
        [
            sum(rank_association(a, b) for a, b in zip(orders, y, strict=True))
            for orders in product(*(list(permutations(a)) for a in x))
        ]
    )
    above, below = (sums >= known - 1e-9).mean(), (sums <= known + 1e-9).mean()
    return min(1, {"above": above, "below": below, "two-sided": 2 * min(above, below)}[region])


@pytest.mark.parametrize("region", ["above", "below", "two-sided"])
@given(
    x=st.lists(st.permutations([1, 2, 3]), min_size=1, max_size=3),
    seed=st.integers(0, 1000),
)
def test_the_p_value_of_an_order_counts_all_orders(x, seed, region):
    y = np.random.default_rng(seed).integers(0, 3, (len(x), 3))
    assert order_p_value(x, y, region) == pytest.approx(by_counting(x, y, region))


def test_three_targets_in_one_order_in_three_seeds():
    order = [[3, 2, 1]] * 3
    assert order_p_value(order, order, "above") == pytest.approx(1 / 6**3)
    assert order_p_value(order, order) == pytest.approx(2 / 6**3)
    four = [[4, 3, 2, 1]] * 5
    assert order_p_value(four, four, "above") == pytest.approx(1 / 24**5)


def test_models_that_share_their_strings_are_permuted_together():
    """Three models in one order are no more evidence than one."""
    order = [3, 2, 1]
    assert order_p_value([order], [[order] * 3], "above") == pytest.approx(1 / 6)
    assert np.isnan(order_p_value([[1, 1, 1]], [order]))
    assert np.isnan(order_p_value([], []))
    with pytest.raises(ValueError, match="8 items"):
        order_p_value([range(8)], [range(8)])


def test_random_orders_are_rejected_as_often_as_said():
    chance = np.random.default_rng(3)
    x = [[4, 3, 2, 1]] * 5
    p = np.array([order_p_value(x, chance.integers(0, 6, (5, 4))) for _ in range(400)])
    assert (p <= 0.05).mean() < 0.05 + 3 * math.sqrt(0.05 * 0.95 / 400)


@pytest.mark.parametrize("n", range(5, 41))
def test_the_interval_of_the_median_is_scipys(n):
    """`quantile_test` has an exact interval of a quantile as well."""
    values = np.random.default_rng(n).exponential(size=n)
    test = stats.quantile_test(values, p=0.5, alternative="two-sided")
    expected = test.confidence_interval(1 - 2 * SIGN_LEVEL - 1e-12)
    assert median_interval(values) == (expected.low, expected.high)


@pytest.mark.parametrize("n", range(5))
def test_few_values_have_no_interval_of_the_median(n):
    assert median_interval(range(n)) == (-np.inf, np.inf)


def test_five_values_bound_their_median_by_the_lowest_and_the_highest():
    assert median_interval([3, 1, 2, 5, 4]) == (1, 5)
    assert median_interval([7, 3, 1, 2, 5, 4, 6, 9, 8]) == (2, 8)


@pytest.mark.parametrize("n", [3, 5, 9])
def test_power_is_the_share_of_studies_that_decide(n):
    values = np.random.default_rng(n).normal(1.2, 1, n)
    mean, spread = values.mean(), values.std(ddof=1)
    studies = np.random.default_rng(0).normal(mean, spread, (20_000, n))
    by_student = abs(studies.mean(axis=1)) > student_reach(studies)
    by_signs = np.array([min(median_interval(of)) > 0 for of in studies[:4000]])
    decided = by_student[:4000] & by_signs if n >= 5 else by_student
    assert power(values, 0.0) == pytest.approx(decided.mean(), abs=0.05)


def student_reach(studies):
    n = studies.shape[1]
    return stats.t.ppf(0.975, n - 1) * studies.std(axis=1, ddof=1) / np.sqrt(n)


def test_values_without_spread_have_no_power():
    assert np.isnan(power([1.0, 1.0, 1.0], 0.0))
    assert np.isnan(power([1.0], 0.0))
    assert np.isnan(power([1.0, 2.0], np.nan))
