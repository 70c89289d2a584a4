"""Conformal intervals, in simulated worlds with a known truth."""

import warnings

import numpy as np
import pandas as pd
import pytest

from palimpsest.atlas import kinds
from palimpsest.atlas.conformal import (
    HELD_OUT,
    LEVEL,
    Calibration,
    conformal_table,
    features_of,
    told_apart,
)


def world(chance, n, centre=0.0):
    """Two cheap measures and exact values; errors grow with the first measure, as widths do not."""
    first = centre + chance.standard_normal(n)
    second = chance.standard_normal(n)
    noise = (0.3 + 0.3 * np.exp(first)) * chance.standard_normal(n)
    exact = 0.01 * np.sinh(2 + first + 0.5 * second + noise)
    return np.column_stack([first, second]), exact


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


def test_a_run_is_tested_by_calibrations_that_lack_something_of_it():
    chance = np.random.default_rng(6)
    truth, contenders = [], []
    for model in ("a", "b", "c"):
        for language in ("L1", "L2"):
            for seed in (0, 1):
                measured, exact = world(chance, 40)
                run = {"model": model, "language": language, "size": 64, "seed": seed}
                ids = [f"{seed}-{number}" for number in range(40)]
                truth.append(pd.DataFrame({**run, "string_id": ids, "self_influence": exact}))
                contenders += [
                    pd.DataFrame({**run, "string_id": ids, "measure": name, "amount": values})
                    for name, values in zip(("one", "two"), measured.T, strict=True)
                ]
    families = {"a": "A", "b": "A", "c": "C"}
    found = conformal_table(pd.concat(truth), pd.concat(contenders), "L2", families)
    assert list(found.columns) == kinds.CONFORMAL.names
    assert set(found["language"]) == {"L2"}
    assert set(found["held_out"]) == set(HELD_OUT) - {"size"}  # all runs have one size
    assert len(found) == 6 * 4
    assert (found.loc[found["held_out"] == "string", "n_strings"] < 40).all()
    assert found["coverage"].mean() == pytest.approx(LEVEL, abs=0.05)
    assert (found["single"] == "one").all()
    assert (found["width"] < found["single_width"]).mean() > 0.7
    # A measure that applies to no string changes nothing, and no mean of nothing is taken.
    nowhere = contenders[0].assign(measure="three", amount=np.nan)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        same = conformal_table(pd.concat(truth), pd.concat([*contenders, nowhere]), "L2", families)
    pd.testing.assert_frame_equal(same, found)


def test_of_few_strings_nothing_is_said():
    run = {"model": "a", "language": "L1", "size": 4, "seed": 0}
    ids = list("wxyz")
    truth = pd.DataFrame({**run, "string_id": ids, "self_influence": 0.1})
    contenders = pd.DataFrame({**run, "string_id": ids, "measure": "one", "amount": 1.0})
    found = conformal_table(truth, contenders, "L1", {"a": "A"})
    assert found.empty
    assert list(found.columns) == kinds.CONFORMAL.names
