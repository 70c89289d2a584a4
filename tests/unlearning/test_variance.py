"""The split of variance: by hand, against likelihoods, and its intervals in simulated worlds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from scipy import optimize, stats

from helpers.unlearning_world import FORGET, LEARNED, UNSEEN, unlearned, world
from palimpsest import tables
from palimpsest.sections import KINDS
from palimpsest.unlearning.evaluate.gaps import per_model_shares
from palimpsest.unlearning.evaluate.variance import split_variance, variance_table
from palimpsest.unlearning.run.setups import unlearned_models

TRAINING, UNLEARNING = "training seed", "unlearning seed"


def draws(chance, share, n_trainings=32, n_unlearnings=2, effects=None):
    """Values with variance 1; a share of it is due to the unlearning seed."""
    effects = chance.normal if effects is None else effects
    of_training = np.sqrt(1 - share) * effects(size=(n_trainings, 1))
    return of_training + np.sqrt(share) * chance.normal(size=(n_trainings, n_unlearnings))


def restricted_likelihood(values):
    """The variances that maximise the restricted likelihood, by a general optimiser."""
    n_rows, n_columns = values.shape
    same_row = np.kron(np.eye(n_rows), np.ones((n_columns, n_columns)))
    flat, ones = values.ravel(), np.ones(values.size)

    def loss(logs):
        covariance = np.exp(logs[0]) * same_row + np.exp(logs[1]) * np.eye(values.size)
        inverse = np.linalg.inv(covariance)
        weight = ones @ inverse @ ones
        residuals = flat - ones @ inverse @ flat / weight
        fit = residuals @ inverse @ residuals
        return np.linalg.slogdet(covariance)[1] + np.log(weight) + fit

    start = np.log([values.var() / 2] * 2)
    options = {"xatol": 1e-9, "fatol": 1e-12, "maxiter": 4000, "maxfev": 4000}
    return np.exp(optimize.minimize(loss, start, method="Nelder-Mead", options=options).x)


def test_by_hand():
    """Row means 1, 4 and 10; within the rows, deviations of 1."""
    found = split_variance([[0.0, 2], [3, 5], [9, 11]])
    # Mean squares: between 2 * 21 = 42, within 6 / 3 = 2.
    assert found.training == pytest.approx((42 - 2) / 2)
    assert found.unlearning == pytest.approx(2)
    assert found.share == pytest.approx(2 / 22)
    low, high = (42 / 2 / stats.f.ppf(rank, 2, 3) for rank in (0.975, 0.025))
    assert found.upper == pytest.approx(2 / (low + 1))
    assert found.lower == pytest.approx(2 / (high + 1))


@pytest.mark.parametrize("share", [0.3, 0.7])
@pytest.mark.parametrize("n_unlearnings", [2, 5])
def test_estimates_maximise_the_restricted_likelihood(share, n_unlearnings):
    values = draws(np.random.default_rng(0), share, 12, n_unlearnings)
    found = split_variance(values)
    assert found.training > 0
    np.testing.assert_allclose(restricted_likelihood(values), found[:2], rtol=1e-4)


def test_at_the_boundary_the_likelihood_knows_one_variance_only():
    values = np.array([[0.0, 3], [3, 0], [1, 2.5], [2, 0.5]])
    found = split_variance(values)
    assert found.training == 0
    assert (found.share, found.upper) == (1, 1)
    training, unlearning = restricted_likelihood(values)
    assert training < 1e-4
    assert unlearning == pytest.approx(found.unlearning, rel=1e-3)
    assert found.unlearning == pytest.approx(values.var(ddof=1))


@settings(deadline=None)
@given(
    arrays.arrays(
        float,
        st.tuples(st.integers(2, 8), st.integers(2, 5)),
        elements=st.integers(-5, 5).map(float),
    ),
    st.floats(0.1, 10),
    st.floats(-5, 5),
)
def test_shares_do_not_depend_on_the_scale_or_the_mean(values, scale, shift):
    found, scaled = split_variance(values), split_variance(values * scale + shift)
    np.testing.assert_allclose(scaled[2:], found[2:], rtol=1e-6, atol=1e-6)
    if np.ptp(values):
        assert 0 <= found.lower <= found.upper <= 1


def test_one_training_or_one_unlearning_cannot_be_split():
    assert np.isnan(split_variance([[1.0], [2.0]])).all()
    assert np.isnan(split_variance([[1.0, 2.0]])).all()


def test_one_source_alone():
    assert split_variance([[1.0, 1.0], [2.0, 2.0]]) == (0.5, 0, 0, 0, 0)
    found = split_variance([[0.1, 0.1], [0.1, 0.1]])
    assert found[:2] == (0, 0)
    assert np.isnan(found[2:]).all()


def test_what_is_no_table_of_numbers_is_refused():
    for values in ([1.0, 2.0], [[]], [[1.0, np.nan]], [[1.0, np.inf]]):
        with pytest.raises(ValueError, match="values must be"):
            split_variance(values)


@pytest.mark.parametrize(("n_trainings", "n_unlearnings"), [(32, 2), (32, 3), (8, 2)])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_the_interval_misses_the_share_in_5_percent_of_worlds(n_trainings, n_unlearnings, share):
    """Half of the misses on either side; 1,500 worlds."""
    chance = np.random.default_rng(1)
    worlds = (draws(chance, share, n_trainings, n_unlearnings) for _ in range(1500))
    found = np.array([split_variance(values)[3:] for values in worlds])
    above, below = (found[:, 0] > share).mean(), (found[:, 1] < share).mean()
    assert 0.012 < above < 0.04
    assert 0.012 < below < 0.04


def test_without_variance_between_trainings_the_interval_reaches_the_whole():
    chance = np.random.default_rng(2)
    found = [split_variance(draws(chance, 1.0)).upper for _ in range(1500)]
    assert 0.012 < np.mean(np.array(found) < 1) < 0.04


def spread_world(folder, repetitions=3, names=("reuse-n-n", "bootstrap")):
    """A world with three methods whose losses differ by training, by unlearning, or by both."""
    made = world(folder, names=names, n=24, pool=24, repetitions=repetitions, methods=())
    keys, chance = np.array(unlearned_models(made.setups)), np.random.default_rng(3)
    before = made.problem().originals.of(keys[:, 0]).loss
    by_training = chance.normal(size=1 + keys[:, 0].max())[keys[:, 0]]
    by_unlearning = chance.normal(size=len(keys))
    for name, of_training, of_unlearning in (("A", 0.1, 0), ("B", 0, 0.1), ("C", 0.1, 0.1)):
        rise = 0.5 + of_training * by_training + of_unlearning * by_unlearning
        loss = before + rise[:, None] * np.where(FORGET, UNSEEN - LEARNED, 0)
        files = unlearned(made.folder, name, keys.tolist(), loss)
        made.unlearned.append(files[0])
        made.models.append(files[1])
    return made


def table_of(made):
    problem = made.problem()
    return variance_table(problem, made.methods(problem))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return spread_world(tmp_path_factory.mktemp("world"))


@pytest.fixture(scope="module")
def found(made):
    return table_of(made).set_index(["method", "source"])


def test_the_table_has_both_sources_of_every_method(found, tmp_path):
    assert found.index.to_list() == [
        ("none", TRAINING),
        *((name, source) for name in "ABC" for source in (TRAINING, UNLEARNING)),
        ("retrain", TRAINING),
    ]
    frame = found.reset_index()[KINDS["unlearning_variance"].names]
    tables.write(tmp_path / "variance.parquet", frame, KINDS["unlearning_variance"])


def test_methods_are_split_by_what_moves_them(found):
    assert found.loc[("A", UNLEARNING), "share"] == pytest.approx(0, abs=1e-9)
    assert found.loc[("B", UNLEARNING), "share"] > 0.7
    assert found.loc[("B", UNLEARNING), "upper"] == 1
    both = found.loc[("C", UNLEARNING)]
    assert both["lower"] < 0.5 < both["upper"]
    assert both["lower"] > 0
    assert both["upper"] < 1
    np.testing.assert_allclose(found.loc["C", "variance"], 0.01, rtol=0.8)
    assert found.loc["C", "share"].sum() == pytest.approx(1)
    assert (found.loc["C", ["n_trainings", "n_unlearnings"]] == [24, 3]).all(axis=None)


def test_the_ends_vary_with_training_only(made, found):
    ends = found.loc[["none", "retrain"]]
    assert ends[["share", "lower", "upper"]].isna().all(axis=None)
    assert (ends[["n_trainings", "n_unlearnings"]] == [24, 1]).all(axis=None)
    assert found.loc[("none", TRAINING), "variance"] == 0
    problem = made.problem()
    before, reference = problem.originals, problem.retrained.of(np.arange(24))
    ideal = problem.retrained.of(np.arange(24, 48))
    of = (part.loss[:24, FORGET] for part in (before, ideal, reference))
    assert found.loc[("retrain", TRAINING), "variance"] == pytest.approx(
        per_model_shares(*of).var(ddof=1)
    )


@pytest.mark.parametrize(("repetitions", "names"), [(1, ["reuse-n-n"]), (2, ["full"])])
def test_one_unlearning_of_each_original_is_not_split(tmp_path, repetitions, names):
    found = table_of(spread_world(tmp_path, repetitions, names)).set_index("method")
    assert found.loc["C", ["variance", "share", "lower", "upper"]].isna().all(axis=None)
    assert found.loc["retrain", "variance"] > 0
    assert (found["n_unlearnings"] == 1).all()


def test_without_a_clear_gap_nothing_is_said(tmp_path):
    made = world(tmp_path, n=8, pool=8, methods=("good",))
    problem = made.problem()
    problem.originals.nll[:, FORGET] = problem.retrained.nll[:8, FORGET]
    found = variance_table(problem, made.methods(problem))
    assert found["variance"].isna().all()
