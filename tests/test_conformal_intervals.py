"""Conformal intervals, in simulated worlds with a known truth."""

import numpy as np
import pytest

from helpers.conformal_world import world
from palimpsest.conformal import LEVEL, Calibration, features_of, told_apart


def covered(ends, exact):
    lower, upper = ends
    answered = ~np.isnan(lower)
    return ((lower <= exact) & (exact <= upper))[answered]


def test_strings_like_the_others_are_covered_as_stated():
    """Where the regression is wrong about the errors, too. 200 calibrations of 200 strings."""
    chance = np.random.default_rng(0)
    shares = []
    for _ in range(200):
        calibration = Calibration.of(*world(chance, 200))
        measured, exact = world(chance, 50)
        shares.append(covered(calibration.interval(measured), exact).mean())
    assert 0.88 < np.mean(shares) < 0.93


def test_strings_that_are_not_like_the_others_are_told_apart_and_not_covered():
    chance = np.random.default_rng(1)
    shares = []
    for _ in range(60):
        known, exact_known = world(chance, 400)
        measured, exact = world(chance, 100, centre=1.0)
        calibration = Calibration.of(known, exact_known)
        features = (features_of(values, calibration.scale) for values in (known, measured))
        assert told_apart(*features) > 0.65
        shares.append(covered(calibration.interval(measured), exact).mean())
    assert np.mean(shares) < 0.87


def test_alike_strings_are_not_told_apart():
    chance = np.random.default_rng(2)
    shifts = [told_apart(chance.random((80, 2)), chance.random((40, 2))) for _ in range(20)]
    assert np.mean(shifts) == pytest.approx(0.5, abs=0.06)


def test_nothing_is_said_outside_of_the_range():
    chance = np.random.default_rng(3)
    calibration = Calibration.of(*world(chance, 200))
    lower, upper = calibration.interval(np.array([[0.0, 0.0], [40.0, 0.0], [-40.0, 0.0]]))
    assert lower[0] < upper[0]
    assert np.isnan([*lower[1:], *upper[1:]]).all()


def test_too_few_errors_have_no_bound():
    """Of four errors, none is a bound for 90 %: the interval is everything."""
    chance = np.random.default_rng(4)
    calibration = Calibration.of(*world(chance, 8))
    assert np.isinf(calibration.reach(LEVEL))


def test_a_measure_that_does_not_apply_is_no_number():
    chance = np.random.default_rng(5)
    measured, exact = world(chance, 200)
    measured[::3, 1] = np.nan
    calibration = Calibration.of(measured, exact)
    new, truth = world(chance, 600)
    new[::3, 1] = np.nan
    assert 0.84 < covered(calibration.interval(new), truth).mean() < 0.96


def test_items_of_a_group_count_together():
    """Groups whose items are alike, one of them large: only groups are independent."""
    chance = np.random.default_rng(7)

    def grouped(n):
        measured, exact = world(chance, n)
        groups = np.repeat(np.arange(n), np.where(np.arange(n) % 10 == 0, 30, 1))
        return measured[groups], exact[groups], groups

    shares = []
    for _ in range(200):
        calibration = Calibration.of(*grouped(120))
        measured, exact = world(chance, 50)
        shares.append(covered(calibration.interval(measured), exact).mean())
    assert 0.88 < np.mean(shares) < 0.94


def test_without_groups_each_item_is_one():
    chance = np.random.default_rng(8)
    measured, exact = world(chance, 60)
    alone = Calibration.of(measured, exact, np.arange(60))
    assert alone.reach(LEVEL) == Calibration.of(measured, exact).reach(LEVEL)
    scores = np.sort(alone.score)
    assert alone.reach(LEVEL) == scores[27]  # of 30 errors, the 28th: ceil(0.9 * 31)
