"""Difference-in-differences, beside two published implementations: diff-diff and csdid.

Point estimates are equal. Other numbers differ in three known ways; each is tested.

Standard errors. Ours divide a sum of squares over n units by n - 1, theirs by n.

Critical values of bands. All three take a quantile of the largest deviation of a draw with random
signs. The peers divide a draw's deviation by one standard error for all draws. Ours divide by the
standard error of the draw itself, as the data's own deviation is divided by a standard error of
the same data. In small cohorts, such a ratio has longer tails, so our bands are wider. In large
cohorts, the critical values are the same.

Means over cohorts. Ours weigh cohorts equally. The peers weigh by size, so the tests compare
cohorts of one size. The peers also count the sizes as random: with other units, a cohort could have
been larger. Our cohorts are macro-batches of a fixed size.
"""

import os

import numpy as np
import pytest

from helpers import peers
from helpers.panels import simulated_panel
from palimpsest import profiles

CELL = ["cohort", "time"]
COHORTS = (2, 3, 5)
N, N_TIMES = 40, 6
SEEDS = range(20)
LACKING = peers.lacking()
if LACKING and "PALIMPSEST_CI" not in os.environ:  # where all must run, the tests fail
    pytest.skip(LACKING, allow_module_level=True)


def grown(cohort, time):
    """An effect that differs between cohorts and fades with time."""
    return cohort / (1 + time - cohort)


def panel(seed=0, n_treated=N, n_untreated=N, effect=grown):
    chance = np.random.default_rng(seed)
    return simulated_panel(chance, COHORTS, n_treated, n_untreated, N_TIMES, effect)


def irregular(frame):
    """Unequal times, and cohorts that are treated between two of them, or at one."""
    times = dict(enumerate([0, 1000, 2500, 4000, 8000, 9000]))
    cohorts = {2: 2000, 3: 4000, 5: 8500, np.inf: np.inf}
    return frame.assign(time=frame["time"].map(times), cohort=frame["cohort"].map(cohorts))


# The peers name a cohort by its own time, ours by the first time of the panel after it.
LATER = {2000: 2500, 8500: 9000}
PANELS = {
    "equal sizes": panel(),
    "another seed": panel(seed=1),
    "unequal sizes": panel(n_treated=25, n_untreated=70),
    "irregular times": irregular(panel()),
}


def beside(theirs, ours, on):
    """One row for each of our rows; theirs have the suffix `_peer`."""
    merged = ours.merge(theirs, on=on, how="outer", suffixes=("", "_peer"), indicator=True)
    assert (merged["_merge"] == "both").all()
    return merged


def shrunk(error, n):
    """Our standard error of n units in each group, with n in the place of n - 1."""
    return error * np.sqrt((n - 1) / n)


def test_no_peer_is_lacking():
    assert LACKING is None


@pytest.mark.parametrize("cells", [peers.cells_of_diff_diff, peers.cells_of_csdid])
@pytest.mark.parametrize("name", PANELS)
def test_every_cell_is_that_of_the_peers(name, cells):
    """The same cells, estimates and base periods; the base period has no standard error."""
    theirs = cells(PANELS[name]).replace({"cohort": LATER})
    table = beside(theirs, profiles.difference_in_differences(PANELS[name]), CELL)
    np.testing.assert_allclose(table["estimate"], table["estimate_peer"], rtol=0, atol=1e-10)
    assert (table["std_error"].isna() == table["std_error_peer"].isna()).all()
    assert table["std_error"].isna().sum() == len(COHORTS)


def test_with_a_varying_base_period_the_cells_after_the_treatment_are_the_same():
    """Cells before are then changes since the time before: other numbers, for the same check."""
    frame = panel()
    theirs = peers.cells_of_diff_diff(frame, base="varying")
    table = profiles.difference_in_differences(frame).merge(theirs, on=CELL)
    alike = np.isclose(table["estimate_x"], table["estimate_y"], rtol=0, atol=1e-10)
    after = table["time"] >= table["cohort"]
    assert alike[after].all()
    assert not alike[~after & (table["time"] < table["cohort"] - 2)].any()


@pytest.mark.parametrize("cells", [peers.cells_of_diff_diff, peers.cells_of_csdid])
@pytest.mark.parametrize("n", [5, 40])
def test_standard_errors_differ_by_one_degree_of_freedom(n, cells):
    frame = panel(n_treated=n, n_untreated=n)
    table = beside(cells(frame), profiles.difference_in_differences(frame), CELL)
    expected = shrunk(table["std_error"], n)
    np.testing.assert_allclose(table["std_error_peer"], expected, rtol=1e-10)


@pytest.mark.parametrize("cells", [peers.cells_of_diff_diff, peers.cells_of_csdid])
def test_the_degree_of_freedom_is_one_for_each_group(cells):
    """A group of n units adds s² / n to our variance, and s² / n - s² / n² to theirs."""
    frame = PANELS["unequal sizes"]
    table = beside(cells(frame), profiles.difference_in_differences(frame), CELL).dropna()
    wide = frame.pivot(index=["cohort", "unit"], columns="time", values="outcome")
    for row in table.itertuples():
        changes = wide[row.time] - wide[row.cohort - 1]
        groups = [changes[row.cohort], changes[np.inf]]
        between = sum(group.var() / len(group) ** 2 for group in groups)
        np.testing.assert_allclose(row.std_error**2 - row.std_error_peer**2, between, rtol=1e-8)


def critical(table):
    """Half the width of the first band in standard errors; it is the same for all."""
    return ((table["upper"] - table["estimate"]) / table["std_error"]).dropna().iloc[0]


def critical_of_event_study(frame, seed):
    """That of diff-diff, for its means over cohorts."""
    fitted = peers.fitted_by_diff_diff(frame, n_draws=1000, seed=seed)
    return fitted.aggregate("event_study").cband_crit_value


def mean_gap(n, ours, theirs):
    """Our critical value minus theirs, over many seeds: its mean and the standard error of it."""
    frame = panel(seed=1, n_treated=n, n_untreated=n, effect=lambda g, t: 0.0)
    gaps = np.array([critical(ours(frame, seed=seed)) - theirs(frame, seed) for seed in SEEDS])
    return gaps.mean(), gaps.std(ddof=1) / np.sqrt(len(gaps))


COMPARED = {
    "cells, csdid": (
        profiles.difference_in_differences,
        lambda frame, seed: peers.cells_of_csdid(frame, 1000, seed)["critical"].iloc[0],
    ),
    "means over cohorts, diff-diff": (profiles.by_time_since_treatment, critical_of_event_study),
}
# diff-diff warns of the base period, whose draws have no spread
base_period = pytest.mark.filterwarnings("ignore:.*effect.s. had non-finite or zero bootstrap SE")


@base_period
@pytest.mark.parametrize("name", COMPARED)
def test_critical_values_are_the_same_in_large_cohorts(name):
    """Up to the error of 20 x 1,000 draws, and what is left of the studentisation at 400 units.

    With 798 degrees of freedom, a quantile q of Student's t is about q (q² + 1) / (4 · 798) above
    that of the normal distribution: 0.01 at q = 2.9.
    """
    gap, error = mean_gap(400, *COMPARED[name])
    assert error < 0.03
    assert abs(gap - 0.01) < 4 * error


@base_period
@pytest.mark.parametrize("name", COMPARED)
def test_studentised_bands_are_wider_in_small_cohorts(name):
    """By far more than the error of the draws, and less so in larger cohorts."""
    (small, error), (larger, _) = (mean_gap(n, *COMPARED[name]) for n in (12, 40))
    assert small > 0.2 > 10 * error
    assert 0 < larger < small / 2


def test_means_over_cohorts_are_those_of_an_event_study():
    """Estimates are equal; standard errors too, once the sizes of cohorts are fixed.

    Random sizes add the variance Σ n_g (effect_g - mean)² / (Σ n_g)² over the cohorts g of a mean.
    With n units in each of k cohorts, this is the effects' mean square distance from their mean
    divided by k n.
    """
    frame = panel()
    theirs = peers.fitted_by_diff_diff(frame).aggregate("event_study").to_dataframe()
    theirs = theirs.rename(columns={"event_time": "since", "att": "estimate", "se": "std_error"})
    table = beside(theirs, profiles.by_time_since_treatment(frame), ["since"])
    np.testing.assert_allclose(table["estimate"], table["estimate_peer"], rtol=0, atol=1e-10)
    cells = profiles.difference_in_differences(frame)
    effects = cells["estimate"].groupby(cells["time"] - cells["cohort"])
    of_sizes = effects.var(ddof=0).to_numpy() / (table["n_cohorts"] * N)
    assert of_sizes.max() > 0.01  # the term is no trifle here
    expected = np.sqrt(shrunk(table["std_error"], N) ** 2 + of_sizes)
    np.testing.assert_allclose(table["std_error_peer"], expected, rtol=1e-10)


def test_both_peers_agree_on_the_event_study():
    frame = panel()
    csdid = peers.fitted_by_csdid(frame).aggte("dynamic", bstrap=False, cband=False).atte
    diff_diff = peers.fitted_by_diff_diff(frame).aggregate("event_study").to_dataframe()
    np.testing.assert_allclose(csdid["att_egt"], diff_diff["att"], atol=1e-10)
    np.testing.assert_allclose(np.asarray(csdid["se_egt"]).ravel(), diff_diff["se"], rtol=1e-10)
