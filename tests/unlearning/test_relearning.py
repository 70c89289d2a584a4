"""Relearning with censored models, by hand and against scipy."""

import itertools

import numpy as np
import pytest
from scipy.stats import CensoredData, ecdf, logrank

from palimpsest.statistics import student
from palimpsest.unlearning.evaluate.relearning import (
    Relearned,
    logrank_excess,
    logrank_p_value,
    restricted_mean,
    share_not_reached,
    tried,
)


def models(steps, limit=10.0):
    steps = np.array(steps, dtype=float)
    return Relearned(steps, np.broadcast_to(limit, steps.shape).astype(float))


def test_restricted_mean_by_hand():
    """Steps 2, more than 10, 6 and more than 10, up to 10: (2 + 10 + 6 + 10) / 4."""
    found = restricted_mean(models([2, np.inf, 6, np.inf]))
    assert found.mean == 7
    assert found == pytest.approx(student([2, 10, 6, 10]))
    assert restricted_mean(models([0, 2, 4])) == pytest.approx(student([0, 2, 4]))


@pytest.mark.parametrize("limit", [10.0, np.array([10, 12, 30, 20, 10, 10, 12])])
def test_it_is_the_area_under_scipys_kaplan_meier_curve(limit):
    """Kaplan and Meier 1958: heights of the curve times widths, from 0 to the smallest limit."""
    relearned = models([2, np.inf, 6, np.inf, 6, 0, 11 if np.ndim(limit) else 10], limit)
    times, reached = relearned.times, relearned.reached
    curve = ecdf(CensoredData(uncensored=times[reached], right=times[~reached])).sf
    ends = np.concatenate([[0], np.minimum(curve.quantiles, 10), [10]])
    heights = np.concatenate([[1], curve.probabilities])
    assert restricted_mean(relearned).mean == pytest.approx(np.diff(ends) @ heights)


def test_only_steps_within_the_smallest_limit_count():
    """A model that relearns after the smallest limit counts like one that does not relearn."""
    one = restricted_mean(models([2, 12, np.inf], np.array([10, 20, 20.0])))
    other = restricted_mean(models([2, np.inf, np.inf], 10))
    assert one == pytest.approx(other)


@pytest.mark.parametrize(("steps", "mean"), [([np.inf] * 5, 10), ([3] * 5, 3), ([np.inf], 10)])
def test_no_interval_where_all_models_are_alike(steps, mean):
    found = restricted_mean(models(steps))
    assert found.mean == mean
    assert np.isnan(found[1:]).all()


def test_models_that_were_not_tried_are_left_out():
    found = tried(np.array([3, np.nan, np.inf]), np.array([10, np.nan, 10]))
    np.testing.assert_array_equal(found.steps, [3, np.inf])
    none = tried(np.array([np.nan]), np.array([np.nan]))
    assert np.isnan(restricted_mean(none)).all()
    assert np.isnan(share_not_reached(none)).all()


@pytest.mark.parametrize("steps", [-1, 11])
def test_impossible_steps_are_refused(steps):
    with pytest.raises(ValueError, match="at most the limit"):
        restricted_mean(models([steps, 3]))


def test_the_interval_holds_the_truth():
    """Steps uniform in 0 to 20, censored after 10: the mean of min(steps, 10) is 7.5."""
    chance = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        steps = chance.uniform(0, 20, 16)
        found = restricted_mean(models(np.where(steps <= 10, steps, np.inf)))
        inside += found.lower <= 7.5 <= found.upper
    assert 0.91 <= inside / 400 <= 0.98


def test_the_share_that_does_not_relearn_by_hand():
    """Clopper and Pearson 1934: none of 5 has the upper end 1 - 0.025^(1/5)."""
    found = share_not_reached(models([1, 2, 3, 4, 5]))
    assert found == pytest.approx((0, 0, 1 - 0.025 ** (1 / 5)))


def test_logrank_by_hand():
    """Mantel 1966: kind A at 1 and 3, kind B at 2 and censored.

    Expected of A: 2 of 4 at 1, 1 of 3 at 2, 1 of 2 at 3, that is 4/3; observed 2.
    """
    excess = logrank_excess(models([1, 3, 2, np.inf]))
    assert excess[:2].sum() == pytest.approx(2 - 4 / 3)
    assert excess.sum() == pytest.approx(0)


def test_logrank_is_exact_for_few_models():
    """All 70 labellings of 4 and 4 models."""
    steps = np.array([1, 2, 4, 7, 5, 8, 9, np.inf])
    pooled = models(steps)
    excess = logrank_excess(pooled)
    sums = [excess[list(chosen)].sum() for chosen in itertools.combinations(range(8), 4)]
    exact = np.mean(np.abs(sums) >= abs(excess[:4].sum()) - 1e-9)
    found = logrank_p_value(models(steps[:4]), models(steps[4:]))
    assert found == pytest.approx(exact, abs=0.015)


def test_logrank_of_many_models_is_scipys():
    chance = np.random.default_rng(1)
    one, other = chance.exponential(6, 80).round(1), chance.exponential(9, 70).round(1)
    samples = [models(np.where(steps <= 10, steps, np.inf)) for steps in (one, other)]
    censored = [
        CensoredData(uncensored=of.steps[of.reached], right=of.limit[~of.reached]) for of in samples
    ]
    asymptotic = logrank(*censored).pvalue
    assert logrank_p_value(*samples) == pytest.approx(asymptotic, abs=0.02)
    assert 0.001 < asymptotic < 0.2


def test_logrank_of_equal_kinds_is_small_in_at_most_6_per_cent():
    chance = np.random.default_rng(0)
    p = []
    for study in range(500):
        steps = chance.integers(1, 15, 16).astype(float)
        pooled = np.where(steps <= 10, steps, np.inf)
        p.append(logrank_p_value(models(pooled[:8]), models(pooled[8:]), 199, seed=study))
    assert np.mean(np.array(p) <= 0.05) <= 0.05 + 2 * np.sqrt(0.05 * 0.95 / 500)


def test_logrank_without_an_event_or_a_model_is_undefined():
    assert np.isnan(logrank_p_value(models([np.inf] * 3), models([np.inf] * 2)))
    assert np.isnan(logrank_p_value(models([]), models([3])))
