"""P-values and intervals by exchanging strings, against their definition on tiny designs."""

from itertools import permutations

import numpy as np
import pytest

from palimpsest.density import mixed_models
from palimpsest.density.label_permutations import Exchanges, Scores, random_orders

N_UNITS, N_RUNS = 6, 3


def tiny(is_logistic=False, seed=0, n_terms=1):
    """A model of 6 units in 3 runs without terms; terms; and the outcome."""
    chance = np.random.default_rng(seed)
    n = N_UNITS * N_RUNS
    terms = chance.normal(size=(n, n_terms))
    outcome = terms[:, 0] + np.repeat(chance.normal(size=N_UNITS), N_RUNS) + chance.normal(size=n)
    if is_logistic:
        outcome = (outcome > 0.2).astype(float)
    levels = {"unit": np.repeat(np.arange(N_UNITS), N_RUNS)}
    empty = mixed_models.fit(outcome, np.empty((n, 0)), levels, is_logistic)
    assert empty.converged
    return Scores(empty, outcome, levels), terms, outcome, empty


def enumerated(null, term, strata):
    """The exact p-value: each order inside strata, with whole units of the term moved by hand."""
    scores = []
    for order in permutations(range(N_UNITS)):
        if (strata[list(order)] == strata).all():
            moved = term.reshape(N_UNITS, N_RUNS)[list(order)].ravel()
            scores.append(moved @ null.left)
    far = np.abs(np.array(scores) - np.mean(scores))
    return (far >= far[0] - 1e-9).mean()


def all_orders(strata):
    """All orders inside strata but the one that changes nothing, which counts as observed."""
    orders = [np.array(order) for order in permutations(range(N_UNITS))]
    return np.array([order for order in orders[1:] if (strata[order] == strata).all()])


def every(strata):
    """The exchanges of all orders inside strata."""
    return Exchanges(strata, N_RUNS, all_orders(strata))


@pytest.mark.parametrize("is_logistic", [False, True])
@pytest.mark.parametrize("strata", [[0] * 6, [0, 0, 0, 1, 1, 1], [2, 0, 2, 0, 2, 0]])
@pytest.mark.parametrize("seed", range(3))
def test_the_p_value_is_that_of_the_enumeration(is_logistic, strata, seed):
    strata = np.array(strata)
    null, terms, _, _ = tiny(is_logistic, seed)
    exact = enumerated(null, terms[:, 0], strata)
    assert null.p_values(terms, every(strata)) == pytest.approx([exact])
    drawn = Exchanges(strata, N_RUNS, random_orders(strata, 4000, seed))
    error = 4 * np.sqrt(exact * (1 - exact) / 4000) + 1e-3
    assert null.p_values(terms, drawn) == pytest.approx([exact], abs=error)


def test_a_term_is_tested_given_the_others():
    """What the others explain is taken from the term, and from the outcome, by the covariance."""
    null, terms, outcome, empty = tiny(n_terms=2)
    spread = empty.spreads["unit"] ** 2
    blocks = np.kron(np.eye(N_UNITS), np.ones((N_RUNS, N_RUNS)))
    inverse = np.linalg.inv(spread * blocks + empty.residual**2 * np.eye(len(outcome)))
    others = np.column_stack([np.ones(len(outcome)), terms[:, 1]])
    explain = np.linalg.solve(others.T @ inverse @ others, others.T @ inverse)
    own = terms[:, 0] - others @ explain @ terms[:, 0]
    left = inverse @ (outcome - others @ explain @ outcome)
    orders = all_orders(np.zeros(N_UNITS, dtype=int))
    scores = [own.reshape(N_UNITS, -1)[order].ravel() @ left for order in orders]
    far = np.abs([own @ left, *scores] - np.mean([own @ left, *scores]))
    found = null.p_values(terms, every(np.zeros(N_UNITS, dtype=int)))
    assert found[0] == pytest.approx((far >= far[0] - 1e-9).mean())


def test_p_values_of_a_null_world_are_uniform():
    """With one term that has nothing to do with the outcome, the p-value is exact."""
    exchanges = every(np.zeros(N_UNITS, dtype=int))
    found = []
    null, _, _, _ = tiny(seed=1)
    for seed in range(300):
        term = np.repeat(np.random.default_rng([seed, 5]).normal(size=N_UNITS), N_RUNS)
        term += np.random.default_rng([seed, 6]).normal(size=len(term))
        found.append(null.p_values(term[:, None], exchanges)[0])
    for level in (0.05, 0.2, 0.5):
        error = 4 * np.sqrt(level * (1 - level) / 300)
        assert np.mean(np.array(found) <= level) == pytest.approx(level, abs=error)


# Intervals


def fitted(is_logistic=False, seed=0, n_terms=1):
    """The model with its terms, and what it was made of."""
    _, terms, outcome, _ = tiny(is_logistic, seed, n_terms)
    levels = {"unit": np.repeat(np.arange(N_UNITS), N_RUNS)}
    fit = mixed_models.fit(outcome, terms, levels, is_logistic)
    assert fit.converged
    return Scores(fit, outcome, levels), terms, fit


@pytest.mark.parametrize("strata", [[0] * 6, [0, 0, 0, 1, 1, 1]])
@pytest.mark.parametrize("seed", range(4))
def test_an_interval_holds_the_effects_that_are_not_rejected(strata, seed):
    """An effect is taken from the outcome, and the p-value of the rest is enumerated."""
    strata = np.array(strata)
    scores, terms, fit = fitted(seed=seed)
    (found,) = scores.intervals(terms, fit.estimates[1:], every(strata))
    level = 0.05
    (term,) = scores.each_given_others(terms)

    def p_value(effect):
        left = term.left + (fit.estimates[1] - effect) * term.weighted
        orders = [np.arange(N_UNITS), *all_orders(strata)]
        moved = [(terms[:, 0]).reshape(N_UNITS, -1)[order].ravel() @ left for order in orders]
        far = np.abs(np.array(moved) - np.mean(moved))
        return (far >= far[0] - 1e-9).mean()

    if not np.isfinite(found.lower):
        # Among so few orders, none is rare enough.
        assert 1 / (1 + len(all_orders(strata))) > level / 2
        return
    inside = np.linspace(found.lower, found.upper, 9)[1:-1]
    assert all(p_value(effect) >= level for effect in inside)
    assert p_value(found.mean) == 1
    width = found.upper - found.lower
    for outside in (found.lower - 1e-6 * width, found.upper + 1e-6 * width):
        assert p_value(outside) < level + 1e-9


def test_an_interval_is_that_of_the_shifted_outcome():
    """A known effect that is added to the outcome moves the interval by as much."""
    _, terms, outcome, _ = tiny(n_terms=2)
    levels = {"unit": np.repeat(np.arange(N_UNITS), N_RUNS)}
    found = []
    for more in (0.0, 3.0):
        shifted = outcome + more * terms[:, 0]
        fit = mixed_models.fit(shifted, terms, levels)
        scores = Scores(fit, shifted, levels)
        found.append(scores.intervals(terms, fit.estimates[1:], every(np.zeros(6, dtype=int))))
    np.testing.assert_allclose(np.subtract(found[1][0], found[0][0]), 3, rtol=1e-3)
    np.testing.assert_allclose(found[1][1], found[0][1], atol=1e-3)


def test_without_exchanges_there_is_no_interval():
    scores, terms, fit = fitted()
    alone = Exchanges(np.arange(N_UNITS), N_RUNS, random_orders(np.arange(N_UNITS), 50, 0))
    assert np.isnan(scores.intervals(terms, fit.estimates[1:], alone)).all()
