"""Other measures of forgetting, against independent implementations and known cases."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize, stats
from unlearning_world import FORGET, unlearned, world

from palimpsest import tables
from palimpsest.unlearning.metrics import (
    ks_log_p,
    logistic_regression,
    membership_accuracy,
    metrics,
)
from palimpsest.unlearning.scores import student

METRICS = [
    "accuracy_gap",
    "mia_accuracy",
    "mia_gap",
    "ks_log_p",
    "extraction",
    "relearn_epochs",
    "distance_to_original",
    "distance_to_retrained",
]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A world whose ideal models have been measured, half of which do not relearn in time."""
    made = world(tmp_path_factory.mktemp("world"), repetitions=2)
    problem = made.problem()
    keys = [(origin, 0) for origin in range(problem.n_reference)]
    relearn = np.array([5.0, np.inf, np.nan, np.nan] * 4)
    loss = problem.retrained.of(np.arange(16, 32)).loss
    files = unlearned(made.folder, "retrain", keys, loss, relearn=relearn)
    made.unlearned.append(files[0])
    made.models.append(files[1])
    return made


@pytest.fixture(scope="module")
def found(made):
    problem = made.problem()
    return metrics(problem, made.methods(problem), relearn_epochs=10)


def of(found, method, metric):
    return found[(found["method"] == method) & (found["metric"] == metric)].iloc[0]


def test_every_method_has_every_metric(found, tmp_path):
    tables.write(tmp_path / "metrics.parquet", found, "unlearning_metrics")
    assert found.groupby("method")["metric"].apply(list).to_dict() == dict.fromkeys(
        ["none", "good", "shifted", "retrain"], METRICS
    )


def test_gaps_are_between_means_and_their_intervals_are_folded_at_0(made, found):
    problem = made.problem()
    copies = problem.copies("forget")
    accuracy = problem.originals.accuracy(copies)[:16], problem.retrained.accuracy(copies)[:16]
    row = of(found, "none", "accuracy_gap")
    mean, lower, upper = student(accuracy[0] - accuracy[1])
    assert (row["estimate"], row["lower"], row["upper"]) == pytest.approx((mean, lower, upper))
    assert row["reference"] == 0
    for metric in ("accuracy_gap", "mia_gap"):
        good, none = of(found, "good", metric), of(found, "none", metric)
        assert good["estimate"] < 0.1 < none["lower"]
        assert good["lower"] == 0
        assert good["upper"] > good["estimate"]


def test_what_the_original_gives_away(found):
    assert of(found, "none", "mia_accuracy")["estimate"] > 0.95
    assert of(found, "good", "mia_accuracy")["reference"] == pytest.approx(0.5, abs=0.1)
    assert of(found, "none", "extraction")["estimate"] == 1
    assert of(found, "none", "extraction")["reference"] == 0
    n = FORGET.sum()
    apart = np.log(2) - np.log(float(stats.binom(2 * n, 0.5).pmf(n)) * 2.0 ** (2 * n))
    assert of(found, "none", "ks_log_p")["estimate"] == pytest.approx(apart)
    reference = of(found, "retrain", "ks_log_p")
    assert reference["estimate"] == pytest.approx(reference["reference"])


def test_models_that_do_not_relearn_count_as_one_epoch_more(found):
    """Of sixteen models eight were tried: four took 5 epochs and four more than 10."""
    row = of(found, "retrain", "relearn_epochs")
    assert (row["estimate"], row["n_models"]) == ((5 + 11) / 2, 8)
    assert of(found, "good", "relearn_epochs")["reference"] == 8
    assert of(found, "good", "relearn_epochs")["estimate"] == 3
    row = of(found, "good", "distance_to_original")
    assert (row["estimate"], row["lower"], row["upper"]) == pytest.approx(
        student(1 + np.arange(16))
    )


def test_an_end_that_was_not_measured_has_null(found):
    row = of(found, "none", "relearn_epochs")
    assert np.isnan(row["estimate"])
    assert row["n_models"] == 0


# Where the p-value is 1, rounding can take scipy above it: it warns and takes the asymptotic one.
@pytest.mark.filterwarnings("ignore:ks_2samp. Exact calculation unsuccessful")
@given(st.integers(0, 10**6), st.integers(1, 40), st.floats(-2, 2))
def test_kolmogorov_smirnov_is_scipys(seed, n, shift):
    chance = np.random.default_rng(seed)
    one, other = chance.normal(size=(3, n)), shift + chance.normal(size=(3, n))
    tests = [stats.ks_2samp(a, b, method="exact") for a, b in zip(one, other, strict=True)]
    # Two samples without ties always differ by one of n at least.
    expected = [0 if round(test.statistic * n) == 1 else np.log(test.pvalue) for test in tests]
    np.testing.assert_allclose(ks_log_p(one, other), expected, atol=1e-9)


def test_kolmogorov_smirnov_of_ties():
    one = np.array([[1.0, 1, 2, 2], [1, 1, 1, 1], [0, 0, 1, 1]])
    other = np.array([[1.0, 2, 1, 2], [1, 1, 1, 1], [1, 1, 1, 1]])
    expected = [
        np.log(stats.ks_2samp(a, b, method="exact").pvalue) for a, b in zip(one, other, strict=True)
    ]
    np.testing.assert_allclose(ks_log_p(one, other), expected, atol=1e-12)


@pytest.mark.parametrize("shift", [0.0, 1.0, 100.0])
def test_logistic_regression_is_at_the_minimum(shift):
    """Whether or not the two kinds are apart, found by a general minimiser."""
    chance = np.random.default_rng(0)
    y = np.arange(25) < 7
    x = chance.normal(size=(4, 25)) + shift * y
    x[3] *= 9
    weight, intercept = logistic_regression(x, y)
    each = np.where(y, 25 / 14, 25 / 36)
    for row, found in zip(x, zip(weight, intercept, strict=True), strict=True):

        def objective(p, row=row):
            margin = np.where(y, 1, -1) * (p[0] * row + p[1])
            return p[0] ** 2 / 2 + each @ np.logaddexp(0, -margin)

        best = optimize.minimize(objective, [0, 0], method="Nelder-Mead", tol=1e-12)
        assert objective(found) <= best.fun + 1e-8


def test_membership_of_sets_that_are_apart_and_of_sets_that_are_not():
    chance = np.random.default_rng(0)
    low, high = chance.normal(1, 0.1, (20, 12)), chance.normal(3, 0.1, (20, 40))
    np.testing.assert_array_equal(membership_accuracy(low, high), 1)
    np.testing.assert_array_equal(membership_accuracy(-low, -high), 1)
    same = membership_accuracy(chance.normal(size=(400, 12)), chance.normal(size=(400, 40)))
    assert same.mean() == pytest.approx(0.5, abs=0.03)
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
