"""From values per seed to estimates: means, undefined values, the lowest of several, words."""

import numpy as np
import pandas as pd
import pytest

from palimpsest.estimates import (
    SEEDS,
    clipped,
    interval_note,
    intervals_over_seeds,
    largest_size,
    lowest,
    mean_remarks,
    over_seeds,
    with_interval,
)
from palimpsest.number_format import percent, score
from palimpsest.statistics import NO_INTERVAL, Interval, student

UNITS = pd.Series(
    [1.0, 3.0, 2.0, 6.0, 5.0, np.nan],
    pd.MultiIndex.from_product([[0, 1, 2], ["m", "n"]], names=["seed", "model"]),
)


COMPLETE = UNITS.fillna(4.0)


def test_the_models_of_a_seed_are_averaged_first():
    found = over_seeds(COMPLETE)
    assert found.values == (2, 4, 4.5)
    assert (found.mean, found.lower, found.upper) == student([2, 4, 4.5])
    assert found.models == {"m": 8 / 3, "n": 13 / 3}
    assert found.over == SEEDS
    assert found.remarks == ()
    wide = over_seeds(COMPLETE.unstack("model"))
    assert wide == found


def test_families_are_averaged_as_models_are():
    by_family = UNITS.rename_axis(index={"model": "family"})
    assert over_seeds(by_family).families == over_seeds(UNITS).models


@pytest.mark.parametrize(
    "values",
    [pd.Series([1.0, 2.0, np.nan]), UNITS, UNITS.unstack("model")],
    ids=["seeds", "units", "models"],
)
def test_an_undefined_value_takes_away_the_interval(values):
    found = over_seeds(values, units="cases", remarks=["more"])
    assert found.remarks == (f"undefined in 1 of {values.size} cases", "more")
    assert np.isfinite(found.mean)
    assert np.isnan([found.lower, found.upper]).all()


def test_nothing_but_undefined_values_is_no_estimate():
    none = over_seeds(pd.Series([np.nan, np.nan]))
    assert (none.values, none.remarks) == ((), ())


def test_an_interval_that_is_taken_away_says_why_first():
    found = over_seeds(UNITS).without_interval("too few")
    assert found.remarks == ("too few", "undefined in 1 of 6 values")
    assert np.isnan([found.lower, found.upper]).all()


def test_means_over_seeds_are_students():
    frame = pd.DataFrame({"method": ["a", "a", "a", "b"], "seed": [0, 1, 2, 0],
                          "value": [1.0, 2.0, 4.0, 5.0]})  # fmt: skip
    found = intervals_over_seeds(frame, ["method"], "value")
    assert tuple(found.loc["a", ["mean", "lower", "upper"]]) == student([1, 2, 4])
    assert found.loc["b", "mean"] == 5
    assert np.isnan(found.loc["b", "lower"])
    assert list(found["n_seeds"]) == [3, 1]


def test_intervals_are_student_intervals_of_the_seeds_means():
    chance = np.random.default_rng(0)
    index = pd.MultiIndex.from_product([["b", "a"], [0, 1], range(3), range(4)])
    table = index.to_frame(index=False, name=["strings", "exact", "seed", "string_id"])
    table["loss"] = chance.normal(size=len(table))
    found = intervals_over_seeds(table, ["strings", "exact"], "loss")
    some = table[(table["strings"] == "a") & (table["exact"] == 1)]
    expected = student(some.groupby("seed")["loss"].mean())
    assert tuple(found.loc[("a", 1), ["mean", "lower", "upper"]]) == pytest.approx(expected)
    assert list(found.index) == [("b", 0), ("b", 1), ("a", 0), ("a", 1)]
    assert intervals_over_seeds(table[table["seed"] == 0], ["exact"], "loss")["lower"].isna().all()
    assert intervals_over_seeds(table.assign(loss=np.nan), ["exact", "strings"], "loss").empty


PARTS = [pd.Series(own) for own in ([1.0, 2.0, 3.0], [0.5, 0.6, 0.9], [4.0, 4.0, 4.5])]


def test_the_lowest_mean_has_ends_of_all():
    found = lowest(PARTS, "seeds of all")
    assert found.values == tuple(PARTS[1])
    assert found.lower == min(student(own).lower for own in PARTS) < student(PARTS[1]).lower
    assert found.upper == min(student(own, confidence=1 - 0.05 / 3).upper for own in PARTS)
    assert found.over == "seeds of all"
    assert np.isnan(found.p_value)
    assert lowest([*PARTS, pd.Series([np.nan])], "").values == ()
    undefined = lowest([*PARTS, pd.Series([9.0, np.nan])], "")
    assert undefined.values == tuple(PARTS[1])
    assert np.isnan([undefined.lower, undefined.upper]).all()


def test_a_mean_without_spread_may_take_the_interval_away():
    flat = [*PARTS, pd.Series([7.0, 7.0, 7.0])]
    assert np.isfinite(lowest(flat, "").lower)
    assert np.isnan(lowest(flat, "", needs_spread=True).lower)


def test_the_largest_size_is_of_either_sign():
    """The largest is -4.2; its size is below 10 if all are within 10 of 0."""
    found = largest_size([PARTS[0], -PARTS[2]], "")
    assert found.mean == pytest.approx(PARTS[2].mean())
    assert found.values == tuple(PARTS[2])
    assert found.upper == student(PARTS[2]).upper
    assert found.lower == student(PARTS[2], confidence=0.975).lower
    assert largest_size([PARTS[0], -PARTS[2]], "", bound=10).p_value < 0.05
    assert largest_size([pd.Series([-0.1, 0.2])], "").lower == 0


def test_an_interval_in_words():
    assert with_interval(Interval(0.48, -0.125, 0.8334)) == "0.48 [−0.125, 0.833]"
    assert with_interval(Interval(-0.00265, -0.00527, -2.97e-05)) == "−0.00265 [−0.00527, −0.00003]"
    assert with_interval(Interval(0.2, 2.97e-05, 0.4)) == "0.2 [0.00003, 0.4]"
    assert with_interval(Interval(3e-05, 2e-05, 4e-05)) == "3e−05 [2e−05, 4e−05]"
    assert with_interval(Interval(0.48, 0.13, 0.83), percent) == "48\u00a0% [13, 83]"
    assert with_interval(Interval(0.48, 0.13, 0.83), score, "\n") == "0.480\n[0.130, 0.830]"
    assert with_interval(Interval(0.48, np.nan, np.nan)) == "0.48"
    assert with_interval(NO_INTERVAL) == "–"
    assert interval_note("placebos", Interval(1, -2, 4)) == "placebos: 1 (−2 to 4)"
    assert interval_note("placebos", Interval(1, np.nan, np.nan)) == ""


def test_intervals_are_cut_where_no_value_can_be():
    assert clipped(Interval(0.9, -0.2, 1.4), (0, 1)) == (0.9, 0, 1)
    assert np.isnan(clipped(Interval(0.9, np.nan, np.nan), (0, 1)).lower)


def test_a_mark_of_a_mean_has_no_minus_zero():
    values = pd.Series([0.1, 0.2, -0.3], pd.Index([0, 1, 2], name="seed"))
    assert mean_remarks({"drift": values, "share": values + 0.5}) == ("drift: 0", "share: 0.5")
