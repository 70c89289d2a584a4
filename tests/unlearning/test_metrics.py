"""Other measures of forgetting, against independent implementations and known cases."""

import math
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats
from sklearn.model_selection import StratifiedKFold

from helpers.unlearning_world import FORGET, unlearned, world
from palimpsest import tables
from palimpsest.sections import KINDS
from palimpsest.statistics import student
from palimpsest.unlearning.metrics import (
    ATTACKED,
    FOLDS,
    SEED,
    ks_log_p,
    membership_accuracy,
    metrics,
)

pytestmark = pytest.mark.slow

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
    """A world with some measured ideal models; half of these do not relearn in time."""
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
    tables.write(tmp_path / "metrics.parquet", found, KINDS["unlearning_metrics"])
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
    """Eight of sixteen models were tried: four took 5 epochs, four took more than 10."""
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


def test_only_the_first_models_are_attacked(made, found):
    """All other metrics use all models."""
    problem = made.problem()
    few = metrics(problem, made.methods(problem), relearn_epochs=10, attacked=3)
    for method in ("none", "good", "shifted", "retrain"):
        row = of(few, method, "mia_accuracy")
        assert (row["n_models"], of(few, method, "mia_gap")["n_models"]) == (3, 3)
    loss = problem.originals.loss[:3]
    each = membership_accuracy(loss[:, problem.forget], loss[:, problem.never_trained])
    row = of(few, "none", "mia_accuracy")
    assert (row["estimate"], row["lower"], row["upper"]) == pytest.approx(student(each))
    loss = problem.retrained.loss[:3]
    of_retrained = membership_accuracy(loss[:, problem.forget], loss[:, problem.never_trained])
    assert row["reference"] == of_retrained.mean()
    others = ~few["metric"].isin(["mia_accuracy", "mia_gap"])
    assert few[others].equals(found[others])
    assert set(found.loc[~others, "n_models"]) == {ATTACKED}
    assert ATTACKED < 16


def test_scikit_learn_is_not_imported_before_it_is_needed():
    code = "import sys, palimpsest.unlearning.metrics; print('sklearn' in sys.modules)"
    path = {"PYTHONPATH": "workflow/scripts"}
    done = subprocess.run([sys.executable, "-c", code], env=path, capture_output=True, check=True)
    assert done.stdout.split() == [b"False"]


AT_1 = 5e-5  # how far scipy's approximation of a p-value of 1 is from it


def smirnov(one, other):
    """The exact p-value, as a fraction of the paths that leave the diagonal as far or farther.

    Source: Gnedenko and Korolyuk 1951.
    """
    n = len(one)
    h = max(abs(int((one <= x).sum()) - int((other <= x).sum())) for x in [*one, *other])
    if h == 0:
        return Fraction(1)
    terms = [(-1) ** (k + 1) * math.comb(2 * n, n - k * h) for k in range(1, n // h + 1)]
    return Fraction(2 * sum(terms), math.comb(2 * n, n))


@settings(deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 40), st.floats(-2, 2), st.sampled_from([None, 0, 1]))
def test_kolmogorov_smirnov_is_exact(seed, n, shift, decimals):
    """Computed in whole numbers, model by model, with and without ties."""
    chance = np.random.default_rng(seed)
    one, other = chance.normal(size=(3, n)), shift + chance.normal(size=(3, n))
    if decimals is not None:
        one, other = one.round(decimals), other.round(decimals)
    expected = np.array([math.log(smirnov(*pair)) for pair in zip(one, other, strict=True)])
    tolerance = np.where(expected == 0, AT_1, 1e-9)
    assert (np.abs(ks_log_p(one, other) - expected) <= tolerance).all()


def test_kolmogorov_smirnov_of_interleaved_samples_is_1(recwarn):
    """Rounding can take it above 1; then it is approximated, without a warning."""
    for n in range(1, 130):
        one = np.arange(n)[None, :] / n
        np.testing.assert_allclose(ks_log_p(one, one + 0.5 / n), 0, atol=AT_1)
        np.testing.assert_array_equal(ks_log_p(one, one), 0)
    assert not recwarn.list


@pytest.mark.parametrize(("n", "fits"), [(500, True), (513, True), (515, False), (2000, False)])
def test_kolmogorov_smirnov_has_a_floor_where_floats_have(n, fits):
    """Samples that are wholly apart: 2 of all paths."""
    one = np.arange(n, dtype=float)[None, :]
    exact = math.log(2) - math.log(math.comb(2 * n, n))
    assert (exact > -708.4) == fits
    floor = np.log(2.0**-1022)
    assert ks_log_p(one, one + n) == pytest.approx(exact if fits else floor, rel=1e-12)


def attack(loss, is_forget):
    """Balanced accuracy on held-out strings of logistic regressions by a general minimiser."""
    folds = min(FOLDS, is_forget.sum(), (~is_forget).sum())
    splits = StratifiedKFold(folds, shuffle=True, random_state=SEED)
    accuracy = []
    for fitted, held in splits.split(loss, is_forget):
        centre, scale = loss[fitted].mean(), loss[fitted].std()
        x, y = (loss[fitted] - centre) / scale, is_forget[fitted]
        each = np.where(y, 0.5 / y.mean(), 0.5 / (1 - y.mean()))

        def objective(p, x=x, y=y, each=each):
            margin = np.where(y, 1, -1) * (p[0] * x + p[1])
            return p[0] ** 2 / 2 + each @ np.logaddexp(0, -margin)

        weight, intercept = optimize.minimize(objective, [0, 0], method="Nelder-Mead", tol=1e-9).x
        right = (weight * (loss[held] - centre) / scale + intercept > 0) == is_forget[held]
        of_kinds = [right[is_forget[held] == kind].mean() for kind in (True, False)]
        accuracy.append(np.mean(of_kinds))
    return np.mean(accuracy)


@pytest.mark.parametrize(("n_forget", "n_test"), [(4, 30), (12, 21), (30, 11)])
def test_membership_is_by_balanced_logistic_regression(n_forget, n_test):
    chance = np.random.default_rng(n_test)
    forget, test = chance.normal(5, 1, (3, n_forget)), chance.normal(6, 2, (3, n_test))
    is_forget = np.arange(n_forget + n_test) < n_forget
    expected = [attack(loss, is_forget) for loss in np.concatenate([forget, test], axis=1)]
    np.testing.assert_allclose(membership_accuracy(forget, test), expected)


def test_membership_of_sets_that_are_apart_and_of_sets_that_are_not():
    chance = np.random.default_rng(0)
    low, high = chance.normal(1, 0.1, (3, 12)), chance.normal(3, 0.1, (3, 40))
    np.testing.assert_array_equal(membership_accuracy(low, high), 1)
    np.testing.assert_array_equal(membership_accuracy(-low, -high), 1)
    same = membership_accuracy(chance.normal(size=(30, 12)), chance.normal(size=(30, 40)))
    assert same.mean() == pytest.approx(0.5, abs=0.07)
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
