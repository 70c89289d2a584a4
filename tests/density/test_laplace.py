"""Logistic fits with random intercepts."""

import warnings

import numpy as np
import pandas as pd
import pytest

from palimpsest.density import laplace, mixed_models
from palimpsest.density.laplace import Laplace


def problem(seed=0, spreads=(1.2, 0.5, 0.3), effect=0.8, n_strings=40, n_runs=8):
    """Right answers, one term, and crossed levels: strings, their groups, and runs."""
    chance = np.random.default_rng(seed)
    strings = np.repeat(np.arange(n_strings), n_runs)
    groups, runs = (np.arange(n_strings) % 5)[strings], np.tile(np.arange(n_runs), n_strings)
    levels = {"string": strings, "group": groups, "run": runs}
    term = chance.normal(size=len(strings))
    log_odds = 0.4 + effect * term
    for spread, codes in zip(spreads, levels.values(), strict=True):
        log_odds += spread * chance.normal(size=codes.max() + 1)[codes]
    right = chance.random(len(strings)) < 1 / (1 + np.exp(-log_odds))
    return right.astype(float), term[:, None], levels


def model_of(right, term, levels):
    """The likelihood of a problem."""
    return Laplace(right, np.column_stack([np.ones(len(right)), term]), list(levels.values()))


def peer(right, term, levels):
    """The same model, fitted by mixedlm with its default search."""
    from mixedlm import glmer

    frame = pd.DataFrame({"y": right, **{f"x{k}": values for k, values in enumerate(term.T)}})
    for name, codes in levels.items():
        frame[name] = pd.Categorical(codes)
    names = [f"x{k}" for k in range(term.shape[1])]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return glmer("y ~ " + " + ".join([*names, *(f"(1|{name})" for name in levels)]), frame)


@pytest.mark.parametrize("names", [["string"], ["run", "string"], ["string", "group", "run"]])
def test_a_fit_is_that_of_mixedlm(names):
    right, term, levels = problem()
    levels = {name: levels[name] for name in names}
    ours = mixed_models.fit(right, term, levels, is_logistic=True)
    theirs = peer(right, term, levels)
    assert ours.converged
    assert theirs.converged
    np.testing.assert_allclose(ours.estimates, theirs.beta, atol=2e-3)
    np.testing.assert_allclose(ours.std_errors, np.sqrt(np.diag(theirs.vcov())), rtol=2e-3)
    np.testing.assert_allclose(list(ours.spreads.values()), theirs.theta, atol=1e-2)
    np.testing.assert_allclose(ours.fitted, theirs.fitted(), atol=2e-3)
    found = np.concatenate([list(ours.spreads.values()), ours.estimates])
    assert model_of(right, term, levels)(found)[0] <= theirs.deviance + 1e-4


def test_the_deviance_is_that_of_mixedlm_wherever_it_is_asked():
    from mixedlm.families import Binomial
    from mixedlm.models.modular import glFormula, mkGlmerDevfun

    right, term, levels = problem()
    frame = pd.DataFrame({"y": right, "x": term[:, 0], **levels})
    formula = "y ~ x + " + " + ".join(f"(1|{name})" for name in levels)
    theirs = mkGlmerDevfun(glFormula(formula, frame, family=Binomial()))
    ours = model_of(right, term, levels)
    for seed in range(5):
        parameters = np.abs(np.random.default_rng(seed).normal(size=5))
        assert ours(parameters)[0] == pytest.approx(theirs(parameters), abs=1e-5)


def test_one_intercept_is_integrated_by_laplace():
    """Its definition, string by string: height and curvature at the mode of the integrand."""
    from scipy.optimize import minimize_scalar

    right, term, levels = problem(n_strings=6)
    theta, beta = 1.3, np.array([0.2, 0.7])
    deviance = 0.0
    for string in range(6):
        rows = levels["string"] == string

        def height(u, rows=rows):
            log_odds = beta[0] + beta[1] * term[rows, 0] + theta * u
            return np.logaddexp(0, log_odds).sum() - right[rows] @ log_odds + u**2 / 2

        mode = minimize_scalar(height, tol=1e-12).x
        p = 1 / (1 + np.exp(-(beta[0] + beta[1] * term[rows, 0] + theta * mode)))
        deviance += 2 * height(mode) + np.log(1 + theta**2 * (p * (1 - p)).sum())
    model = model_of(right, term, {"string": levels["string"]})
    assert model(np.array([theta, *beta]))[0] == pytest.approx(deviance, abs=1e-7)


@pytest.mark.parametrize("seed", range(3))
def test_the_slope_is_that_of_the_deviance(seed):
    model = model_of(*problem(seed))
    place = np.abs(np.random.default_rng(seed).normal(size=5)) + 0.2
    slope = model(place)[1]
    steps = 1e-4 * np.eye(len(place))
    differences = [(model(place + step)[0] - model(place - step)[0]) / 2e-4 for step in steps]
    np.testing.assert_allclose(slope, differences, rtol=1e-4, atol=1e-3)


def test_newtons_steps_do_not_run_off():
    """A full step from 0 overshoots where the likelihood is flat; halved ones find the mode."""
    right, term, levels = problem()
    model = model_of(right, 40 * term, levels)
    far = np.array([6.0, 3.0, 3.0, 0.4, 1.5])
    deviance, slope = model(far)
    assert np.isfinite(deviance)
    u, v = model.mode
    log_odds = model.terms @ far[3:] + model._at_rows(far[:3], u, v)
    large, others = model._by_level(far[:3], right - 1 / (1 + np.exp(-log_odds)))
    np.testing.assert_allclose(large, u, atol=1e-4)
    np.testing.assert_allclose(others, v, atol=1e-4)
    assert np.isfinite(slope).all()


def test_a_spread_of_zero_is_found_and_left():
    """From 0, where the slope is 0, to a positive one; and from a positive one to exactly 0."""
    right, term, levels = problem(spreads=(1.2, 0.0, 0.0))
    model = model_of(right, term, levels)
    found, ended = laplace.search(model, np.zeros(5), 500)
    assert ended
    assert found[0] > 0.5
    assert 0 in found[1:3]
    again, _ = laplace.search(model, np.array([2.0, 1.0, 1.0, 0.0, 0.0]), 500)
    np.testing.assert_allclose(found, again, atol=5e-3)


def test_a_start_changes_nothing_but_time():
    right, term, levels = problem()
    empty = mixed_models.fit(right, np.empty((len(right), 0)), levels, is_logistic=True)
    cold = mixed_models.fit(right, term, levels, is_logistic=True)
    warm = mixed_models.fit(right, term, levels, is_logistic=True, start=empty)
    np.testing.assert_allclose(cold.estimates, warm.estimates, atol=2e-3)
    np.testing.assert_allclose(cold.std_errors, warm.std_errors, rtol=2e-3)


def test_the_order_of_rows_changes_nothing():
    right, term, levels = problem()
    order = np.random.default_rng(1).permutation(len(right))
    ours = mixed_models.fit(right, term, levels, is_logistic=True)
    shuffled = {name: codes[order] for name, codes in levels.items()}
    other = mixed_models.fit(right[order], term[order], shuffled, is_logistic=True)
    np.testing.assert_allclose(ours.estimates, other.estimates, atol=2e-3)
    np.testing.assert_allclose(ours.fitted[order], other.fitted, atol=2e-3)


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_a_term_that_separates_answers_has_no_estimate(scale):
    """In whatever unit it is given."""
    right, _, levels = problem()
    chosen = np.arange(len(right)) % 8 == 0
    right[chosen] = 1.0
    fitted = mixed_models.fit(right, scale * chosen[:, None].astype(float), levels, True)
    assert not fitted.converged
    assert np.isnan(fitted.p_values).all()
