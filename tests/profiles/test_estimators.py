"""The estimators of memorisation profiles: closed forms, invariants, and the bands' error rates."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, t

from helpers.panels import simulated_panel
from palimpsest import profiles
from palimpsest.errors import UserError
from palimpsest.profiles.panel import to_panel

ESTIMATORS = ["difference", "difference_in_differences", "by_time_since_treatment"]


def grown(cohort, time):
    """An effect that differs between cohorts and fades with time."""
    return cohort / (1 + time - cohort)


@pytest.fixture
def frame():
    return simulated_panel(np.random.default_rng(0), effect=grown)


def by_hand(frame, cohort, time, base=None):
    """Mean and standard error of one cell, by pandas."""
    wide = frame.pivot(index="unit", columns="time", values="outcome")
    cohorts = frame.groupby("unit")["cohort"].first()
    change = wide[time] if base is None else wide[time] - wide[base]
    treated, untreated = change[cohorts == cohort], change[np.isinf(cohorts)]
    variance = treated.var() / len(treated) + untreated.var() / len(untreated)
    return treated.mean() - untreated.mean(), np.sqrt(variance)


def test_difference_is_the_difference_of_means(frame):
    table = profiles.difference(frame)
    assert len(table) == 3 * 7
    for row in table.itertuples():
        expected = by_hand(frame, row.cohort, row.time)
        np.testing.assert_allclose([row.estimate, row.std_error], expected, atol=1e-12)


def test_difference_in_differences_is_the_difference_of_mean_changes(frame):
    table = profiles.difference_in_differences(frame)
    for row in table.itertuples():
        mean, error = by_hand(frame, row.cohort, row.time, base=row.cohort - 1)
        np.testing.assert_allclose(row.estimate, mean, atol=1e-12)
        np.testing.assert_allclose(row.std_error, np.nan if mean == 0 else error, atol=1e-12)


def test_by_time_since_treatment_is_the_mean_over_cohorts(frame):
    cells = profiles.difference_in_differences(frame)
    cells["since"] = (cells["time"] - cells["cohort"]).astype(int)
    expected = cells.groupby("since")["estimate"].agg(["mean", "size"])
    table = profiles.by_time_since_treatment(frame).set_index("since")
    np.testing.assert_allclose(table["estimate"], expected["mean"], atol=1e-12)
    assert table["n_cohorts"].tolist() == expected["size"].tolist()


def test_the_error_of_a_mean_over_cohorts_counts_the_shared_comparison(frame):
    """By hand at 1 after treatment: three independent cohorts, one path of the untreated units."""
    wide = frame.pivot(index="unit", columns="time", values="outcome")
    cohorts = frame.groupby("unit")["cohort"].first()
    changes = {g: wide[g + 1] - wide[g - 1] for g in (2, 4, 5)}
    treated = sum(change[cohorts == g].var() / 30 for g, change in changes.items()) / 9
    untreated = (sum(changes.values()) / 3)[np.isinf(cohorts)].var() / 60
    table = profiles.by_time_since_treatment(frame).set_index("since")
    np.testing.assert_allclose(table.loc[1, "std_error"], np.sqrt(treated + untreated), atol=1e-12)


def test_the_base_period_has_no_band(frame):
    table = profiles.difference_in_differences(frame)
    base = table[table["time"] == table["cohort"] - 1]
    assert (base["estimate"] == 0).all()
    assert base[["std_error", "lower", "upper"]].isna().all(axis=None)
    assert not base["significant"].any()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_common_change_and_the_order_of_rows_do_not_matter(frame, name):
    """What happens to all units at a time, such as learning the language, cancels."""
    estimator = getattr(profiles, name)
    shuffled = frame.sample(frac=1, random_state=0)
    learned = shuffled.assign(outcome=shuffled["outcome"] + shuffled["time"].map(np.exp))
    names = ["estimate", "std_error"]
    np.testing.assert_allclose(estimator(learned)[names], estimator(frame)[names], atol=1e-9)


def test_levels_of_cohorts_matter_to_the_difference_only(frame):
    """A cohort of easier strings: parallel trends hold, equal distributions do not."""
    easier = frame.assign(outcome=frame["outcome"] + (frame["cohort"] == 4) * 3.0)
    change = profiles.difference(easier)["estimate"] - profiles.difference(frame)["estimate"]
    np.testing.assert_allclose(change, (profiles.difference(frame)["cohort"] == 4) * 3.0)
    of = profiles.difference_in_differences
    np.testing.assert_allclose(of(easier)["estimate"], of(frame)["estimate"], atol=1e-12)


@settings(max_examples=25, deadline=None)
@given(st.floats(0.01, 100), st.integers(0, 2**32))
def test_the_unit_of_the_outcome_scales_everything(scale, seed):
    frame = simulated_panel(np.random.default_rng(seed), n_treated=5, n_untreated=8)
    scaled = frame.assign(outcome=frame["outcome"] * scale)
    names = ["estimate", "std_error", "lower", "upper"]
    once, more = (profiles.difference_in_differences(each, n=50) for each in (frame, scaled))
    np.testing.assert_allclose(more[names], once[names] * scale, rtol=1e-6, atol=1e-9 * scale)
    assert (more["significant"] == once["significant"]).all()


def test_an_outcome_without_spread_is_estimated_without_error():
    frame = simulated_panel(np.random.default_rng(0))
    frame["outcome"] = np.where(frame["time"] >= frame["cohort"], 1.0, 0.0)
    table = profiles.difference_in_differences(frame)
    after = table["time"] >= table["cohort"]
    assert (table.loc[after, ["estimate", "lower", "upper"]] == 1).all(axis=None)
    assert (table["significant"] == after).all()


def test_one_cell_has_about_the_interval_of_student():
    """With a single cell, the band is the two-sample interval of equally many units."""
    ratios = []
    for seed in range(20):
        chance = np.random.default_rng(seed)
        frame = simulated_panel(chance, cohorts=(1,), n_treated=12, n_untreated=12, n_times=2)
        row = profiles.difference_in_differences(frame, n=4000).iloc[1]
        ratios.append((row["upper"] - row["estimate"]) / row["std_error"] / t.ppf(0.975, 22))
    assert 0.95 < np.mean(ratios) < 1.1


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("n_treated", [12, 40])
def test_bands_hold_all_cells_at_once_as_often_as_they_say(name, n_treated):
    """200 panels with known effects; the number of panels with a miss is binomial."""
    misses = 0
    for seed in range(200):
        frame = simulated_panel(
            np.random.default_rng(seed), n_treated=n_treated, effect=lambda g, t: 1.0
        )
        table = getattr(profiles, name)(frame, n=400, seed=seed)
        since = table["since"] if "since" in table else table["time"] - table["cohort"]
        truth = (since >= 0) * 1.0
        misses += bool(((table["lower"] > truth) | (table["upper"] < truth)).any())
    assert binom.ppf(0.001, 200, 0.05) <= misses <= binom.ppf(0.999, 200, 0.05)


def test_a_cohort_without_a_base_period(frame):
    early = frame.assign(cohort=frame["cohort"].replace(2, 0))
    profiles.difference(early)
    for estimator in (profiles.difference_in_differences, profiles.by_time_since_treatment):
        with pytest.raises(UserError, match=r"panel: row 1: cohort 0 has no base period"):
            estimator(early)


def test_a_panel_may_be_a_table_or_made_before(frame):
    pd.testing.assert_frame_equal(
        profiles.difference(frame, seed=3), profiles.difference(to_panel(frame), seed=3)
    )
