"""The estimators of memorisation profiles: closed forms, invariants, and the bands' error rates."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest, t

from helpers.panels import simulated_panel
from palimpsest import profiles
from palimpsest.errors import UserError
from palimpsest.profiles.estimators import LossWarning
from palimpsest.profiles.panel import NEVER, Panel, to_panel

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


def test_an_effect_without_exceptions_is_significant():
    """Cells in which all units are equal have no error; where all treated ones differ, by hand."""
    frame = simulated_panel(np.random.default_rng(0))
    frame["outcome"] = np.where(frame["time"] >= frame["cohort"], 1.0, 0.0)
    table = profiles.difference_in_differences(frame)
    after = table["time"] >= table["cohort"]
    assert (table["estimate"] == after).all()
    before = table[~after].dropna()
    assert len(before) > 0
    assert (before[["std_error", "lower", "upper"]] == 0).all(axis=None)
    sizes = frame.groupby("cohort", dropna=False)["unit"].nunique()
    n_untreated = sizes.pop(NEVER)
    for cohort, own in table[after].groupby("cohort"):
        n, share = sizes[cohort], sizes[cohort] / (sizes[cohort] + n_untreated)
        variance = share * (1 - share) * (n + n_untreated) / (n + n_untreated - 1)
        expected = np.sqrt(variance / n + variance / n_untreated)
        np.testing.assert_allclose(own["std_error"], expected)
    assert (table["significant"] == after).all()


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(("n_treated", "share"), [(32, 0.1), (10, 0.2), (2, 0.5)])
def test_rare_events_are_no_effect(name, n_treated, share):
    """A cohort without any event is no sign of an effect, where events are rare in all strings.

    Outcomes are 0 or 1, without any effect. About 5 % of panels may have a significant cell.
    """
    cohorts = np.repeat([*np.arange(1.0, 9.0), NEVER], [*[n_treated] * 8, 96])
    n_false, n_panels = 0, 40
    for seed in range(n_panels):
        outcome = (np.random.default_rng(seed).random((len(cohorts), 9)) < share).astype(float)
        panel = Panel(np.arange(9.0), cohorts, outcome)
        with warnings.catch_warnings(action="ignore", category=LossWarning):
            n_false += getattr(profiles, name)(panel, n=200)["significant"].any()
    assert binomtest(int(n_false), n_panels, 0.05, "greater").pvalue > 0.001


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


# Constant up to rounding


def noisy(seed=0, effect=1.2, constant_at=None):
    """30 + 30 units of noise at six times; all change by 0.125 from the base, 2, to one time."""
    outcome = np.random.default_rng(seed).normal(size=(60, 6))
    outcome[:30, 3:] += effect
    if constant_at is not None:
        outcome[:, constant_at] = outcome[:, 2] + 0.125
    return outcome


def panel_of(outcome, cohort=3.0):
    n = len(outcome) // 2
    cohorts = np.repeat([cohort, NEVER], [n, len(outcome) - n])
    return Panel(np.arange(outcome.shape[1], dtype=float), cohorts, outcome)


def critical_value(table):
    """That of the bands, from the cells with an error."""
    known = table[table["std_error"] > 0]
    values = (known["upper"] - known["estimate"]) / known["std_error"]
    assert np.ptp(values) < 1e-6 * values.max()
    return values.iloc[0]


@pytest.mark.parametrize("constant_at", [0, 1, 4, 5])
@pytest.mark.parametrize("seed", range(3))
def test_a_constant_change_does_not_widen_the_other_bands(seed, constant_at):
    """Its cell has no error and is in no maximum: the others are those of the panel without it."""
    outcome = noisy(seed, constant_at=constant_at)
    table = profiles.difference_in_differences(panel_of(outcome))
    cell = table.iloc[constant_at]
    assert cell[["estimate", "std_error", "lower", "upper"]].tolist() == [0, 0, 0, 0]
    assert not cell["significant"]
    kept = np.delete(np.arange(6), constant_at)
    without = Panel(kept.astype(float), panel_of(outcome).cohorts, outcome[:, kept])
    expected = profiles.difference_in_differences(without)
    # From the formula with and without one column, NumPy's products differ in the last bit.
    pd.testing.assert_frame_equal(
        table.drop(constant_at).reset_index(drop=True), expected, rtol=1e-12
    )


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    shift=st.sampled_from([0.0, 1 / 3, -1e3, 1e6, -1e9]),
    power=st.integers(-12, 12),
    constant_at=st.sampled_from([None, 0, 5]),
    name=st.sampled_from(["difference_in_differences", "by_time_since_treatment"]),
)
def test_shift_and_scale_change_no_verdict_and_no_critical_value(
    seed, shift, power, constant_at, name
):
    outcome = noisy(seed, constant_at=constant_at)
    plain, moved = (
        getattr(profiles, name)(panel_of(own), n=200)
        for own in (outcome, (outcome + shift) * 10.0**power)
    )
    assert moved["significant"].tolist() == plain["significant"].tolist()
    assert critical_value(moved) == pytest.approx(critical_value(plain), rel=1e-5)
    assert (moved["std_error"] == 0).sum() == (constant_at is not None)


@pytest.mark.parametrize("constant_at", [None, 0, 5])
def test_the_order_of_units_changes_no_verdict(constant_at):
    """The draws' signs belong to places, so critical values agree as two samples of draws do."""
    outcome = noisy(constant_at=constant_at)
    order = np.random.default_rng(1).permutation(60)
    shuffled = panel_of(outcome)
    shuffled = Panel(shuffled.times, shuffled.cohorts[order], outcome[order])
    plain, other = (
        profiles.difference_in_differences(own, n=4000) for own in (panel_of(outcome), shuffled)
    )
    assert plain["significant"].any()
    assert other["significant"].tolist() == plain["significant"].tolist()
    np.testing.assert_allclose(other["std_error"], plain["std_error"], rtol=1e-12)
    assert critical_value(other) == pytest.approx(critical_value(plain), rel=0.03)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("n_treated", [17, 30])
def test_equal_outcomes_are_no_effect(name, n_treated):
    """The means of 17 and of 30 equal numbers differ by rounding."""
    cohorts = np.repeat([3.0, NEVER], [n_treated, 30])
    for k in range(1, 285, 5):
        outcome = np.full((len(cohorts), 6), k / 72)
        table = getattr(profiles, name)(Panel(np.arange(6.0), cohorts, outcome), n=10)
        assert not table["significant"].any()
        assert (table["estimate"] == 0).all()
        assert (table["std_error"].dropna() == 0).all()


def test_a_constant_group_has_the_spread_of_all_units():
    """Treated units change by exactly 0.125 from any level; the others do not change alike."""
    outcome = noisy()
    outcome[:30, 4] = outcome[:30, 2] + 0.125
    for shift in (0, 1e6):
        cell = profiles.difference_in_differences(panel_of(outcome + shift)).iloc[4]
        change = outcome[30:, 4] - outcome[30:, 2]
        assert cell["estimate"] == pytest.approx(0.125 - change.mean(), abs=1e-9)
        of_all = np.append(change, np.full(30, 0.125)).var(ddof=1)
        expected = np.sqrt((change.var(ddof=1) + of_all) / 30)
        assert cell["std_error"] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("shift", [0, 1 / 3, 1e6])
def test_two_units_of_a_kind_bound_nothing(shift):
    """In a quarter of the draws, the signs leave no spread of either: deviations are infinite."""
    outcome = np.random.default_rng(3).normal(size=(4, 5)) + shift
    table = profiles.difference_in_differences(panel_of(outcome, cohort=2.0)).drop(1)
    assert (table["lower"] == -np.inf).all()
    assert (table["upper"] == np.inf).all()


@pytest.mark.parametrize("name", ESTIMATORS)
def test_numbers_with_a_spread_are_those_of_the_formula(frame, name):
    """To the last bit: what guards against rounding does not touch them."""
    panel = to_panel(frame)
    table = getattr(profiles, name)(panel)
    if name == "by_time_since_treatment":
        return
    places = {time: place for place, time in enumerate(panel.times)}
    for row in table.dropna(subset="std_error").itertuples():
        base = places[row.cohort] - 1 if name == "difference_in_differences" else None
        means, variances = [], []
        for own in (row.cohort, NEVER):
            outcome = panel.outcome[panel.cohorts == own]
            mean = outcome.mean(0)
            around = outcome - mean
            if base is not None:
                mean, around = mean - mean[base], around - around[:, [base]]
            square = np.einsum("nt,nt->t", around, around) / len(outcome)
            means.append(mean[places[row.time]])
            variances.append((square / (len(outcome) - 1))[places[row.time]])
        assert row.estimate == means[0] - means[1]
        assert row.std_error == np.sqrt(variances[0] + variances[1])


# Arguments


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"n": 0}, "n: is 0 and must be a whole number at least 1"),
        ({"n": 2.5}, "n: is 2.5 and must be a whole number at least 1"),
        ({"n": None}, "n: is None and must be a whole number at least 1"),
        ({"confidence": 1.5}, "confidence: is 1.5 and must be a number above 0 and below 1"),
        ({"confidence": 1}, "confidence: is 1 and must be a number above 0 and below 1"),
        ({"confidence": np.nan}, "confidence: is nan and must be a number above 0 and below 1"),
        ({"seed": -1}, "seed: is -1 and must be a whole number at least 0"),
        ({"seed": 0.5}, "seed: is 0.5 and must be a whole number at least 0"),
    ],
)
def test_arguments_that_are_not_allowed_are_named(frame, name, given, words):
    with pytest.raises(UserError) as error:
        getattr(profiles, name)(frame, **given)
    assert str(error.value) == words


@pytest.mark.parametrize(
    ("panel", "words"),
    [
        (None, "panel: is None and must be a Panel or a table"),
        (Panel(np.arange(6.0), np.full(60, NEVER), noisy()), "panel: cohorts: must be times of"),
        (Panel(np.arange(6.0), np.full(60, 3.0), noisy()), "panel: cohorts: must be times of"),
        (
            Panel(np.arange(6.0), np.repeat([-NEVER, NEVER], 30), noisy()),
            "panel: cohorts: must be times of",
        ),
        (Panel(np.arange(6.0)[::-1], panel_of(noisy()).cohorts, noisy()), "panel: times: must be"),
        (Panel(list("abcdef"), panel_of(noisy()).cohorts, noisy()), "panel: times: is "),
        (Panel(np.arange(6.0), panel_of(noisy()).cohorts, [["a"]]), "panel: outcome: is "),
        (Panel(np.arange(5.0), panel_of(noisy()).cohorts, noisy()), "panel: outcome: has the shap"),
        (
            panel_of(noisy() * np.nan),
            "panel: outcome: is nan for unit 0, counted from 0, at time 0",
        ),
    ],
)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_panels_whose_arrays_do_not_fit_are_refused_in_one_line(name, panel, words):
    with pytest.raises(UserError) as error:
        getattr(profiles, name)(panel)
    assert str(error.value).startswith(words)


# Losses


@pytest.mark.parametrize("name", ESTIMATORS)
def test_a_loss_as_outcome_is_asked_about(recwarn, name):
    estimator = getattr(profiles, name)
    estimator(panel_of(noisy(effect=3.0)))
    estimator(panel_of(noisy(effect=0.0)))
    assert not recwarn.list
    with pytest.warns(profiles.LossWarning, match="if the outcome is a loss, call") as found:
        estimator(panel_of(noisy(effect=-3.0)))
    counted = "the mean effect is" if name == "by_time_since_treatment" else "1 of 1 effects are"
    assert f"{counted} significantly negative" in str(found[0].message)
    assert "\n" not in str(found[0].message)


# Rounding, and numbers at the ends of what a float can hold


def noise(chance, level, spread, n=3, n_times=4):
    """A panel without an effect: n treated and n untreated units, at a level and with a spread."""
    outcome = level + spread * chance.normal(size=(2 * n, n_times))
    return Panel(np.arange(n_times, dtype=float), np.repeat([2.0, np.inf], n), outcome)


@pytest.mark.parametrize("spread", [3e-14, 1e-13, 3e-13])
def test_noise_about_as_large_as_rounding_is_never_significant_without_an_error(spread):
    """What is constant up to rounding differs up to rounding, however few units there are."""
    chance = np.random.default_rng(0)
    for _ in range(40):
        found = profiles.difference_in_differences(noise(chance, 1.0, spread), n=50)
        assert not (found["significant"] & (found["std_error"] == 0)).any()


@pytest.mark.parametrize("unit", [1e-300, 1e-170, 1e160, 1e300])
@pytest.mark.parametrize("estimate", [profiles.difference, profiles.difference_in_differences])
def test_the_unit_of_the_outcome_changes_the_unit_of_the_estimates_only(estimate, unit):
    panel = noise(np.random.default_rng(1), 0.0, 1.0, n=8)
    expected = estimate(panel, n=200)
    found = estimate(replace(panel, outcome=panel.outcome * unit), n=200)
    assert found["significant"].tolist() == expected["significant"].tolist()
    names = ["estimate", "std_error", "lower", "upper"]
    np.testing.assert_allclose(found[names] / unit, expected[names], rtol=1e-9)


def stored_as_float32(seed, move):
    """60 units at levels of 20 to 120, stored in float32: all move alike, then not at all alike."""
    chance = np.random.default_rng(seed)
    level = np.float32(np.r_[chance.uniform(20, 30, 30), chance.uniform(70, 120, 30)].round(1))
    noisy = level + np.float32(chance.normal(size=60))
    outcome = np.stack([level, level + np.float32(move), noisy], axis=1)
    assert outcome.dtype == np.float32
    return Panel(np.arange(3.0), np.repeat([1.0, NEVER], 30), outcome)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("name", ESTIMATORS[1:])
def test_rounding_of_the_stored_type_is_no_effect(name, seed):
    """In float64, each unit has a change of its own: 0.1 is added to another level in float32."""
    panel = stored_as_float32(seed, 0.1)
    table = getattr(profiles, name)(panel)
    same = table.iloc[1]
    assert same[["estimate", "std_error", "lower", "upper"]].tolist() == [0, 0, 0, 0]
    assert not same["significant"]
    whole = stored_as_float32(seed, 0.0)
    expected = getattr(profiles, name)(replace(whole, outcome=whole.outcome.astype(float)))
    pd.testing.assert_frame_equal(table, expected)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("stored", [np.float16, np.float32])
def test_no_effect_is_lost_by_the_stored_type(name, stored):
    """Steps of 0.06 between outcomes near -80 hide no effect of 0.4, and shorten no band."""
    panel = noise(np.random.default_rng(3), -80.0, 0.1, n=20)
    outcome = panel.outcome + 0.4 * (panel.times >= panel.cohorts[:, None])
    panel = replace(panel, outcome=outcome.astype(stored))
    exact = getattr(profiles, name)(replace(panel, outcome=panel.outcome.astype(float)))
    found = getattr(profiles, name)(panel)
    pd.testing.assert_frame_equal(found, exact)
    assert found["significant"].any()


@pytest.mark.parametrize(
    ("n_treated", "values"),
    [(30, np.float32([0.3, np.float32(0.7) - np.float32(0.4)])), (72, np.float32([-4.3, -4.3]))],
)
def test_a_mean_of_short_floats_is_taken_in_double_precision(n_treated, values):
    outcome = np.repeat(values, [n_treated, 60])[:, None]
    cohorts = np.repeat([0.0, NEVER], [n_treated, 60])
    table = profiles.difference(Panel(np.zeros(1), cohorts, outcome))
    assert table[["estimate", "std_error"]].to_numpy().tolist() == [[0, 0]]


def test_lists_and_objects_are_read_as_arrays():
    panel = panel_of(noisy().round(3))
    given = Panel(panel.times.tolist(), panel.cohorts.tolist(), panel.outcome.astype(object))
    table = profiles.difference_in_differences(given)
    pd.testing.assert_frame_equal(table, profiles.difference_in_differences(panel))
