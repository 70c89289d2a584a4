"""P-values by exchanging strings, against their definition on designs that can be enumerated."""

from itertools import permutations

import numpy as np
import pytest

from palimpsest.density import label_permutations, mixed_models
from palimpsest.density.label_permutations import Design, Null

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
    return Null(empty, outcome, levels), terms, outcome, empty


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


@pytest.mark.parametrize("is_logistic", [False, True])
@pytest.mark.parametrize("strata", [[0] * 6, [0, 0, 0, 1, 1, 1], [2, 0, 2, 0, 2, 0]])
@pytest.mark.parametrize("seed", range(3))
def test_the_p_value_is_that_of_the_enumeration(is_logistic, strata, seed):
    strata = np.array(strata)
    null, terms, _, _ = tiny(is_logistic, seed)
    exact = enumerated(null, terms[:, 0], strata)
    design = Design(strata, N_RUNS)
    assert null.p_values(terms, design, all_orders(strata)) == pytest.approx([exact])
    drawn = label_permutations.exchanges(strata, 4000, seed)
    error = 4 * np.sqrt(exact * (1 - exact) / 4000) + 1e-3
    assert null.p_values(terms, design, drawn) == pytest.approx([exact], abs=error)


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
    design = Design(np.zeros(N_UNITS, dtype=int), N_RUNS)
    found = null.p_values(terms, design, orders)
    assert found[0] == pytest.approx((far >= far[0] - 1e-9).mean())


def test_p_values_of_a_null_world_are_uniform():
    """With one term that has nothing to do with the outcome, the p-value is exact."""
    strata = np.zeros(N_UNITS, dtype=int)
    design, orders = Design(strata, N_RUNS), all_orders(strata)
    found = []
    null, _, _, _ = tiny(seed=1)
    for seed in range(300):
        term = np.repeat(np.random.default_rng([seed, 5]).normal(size=N_UNITS), N_RUNS)
        term += np.random.default_rng([seed, 6]).normal(size=len(term))
        found.append(null.p_values(term[:, None], design, orders)[0])
    for level in (0.05, 0.2, 0.5):
        error = 4 * np.sqrt(level * (1 - level) / 300)
        assert np.mean(np.array(found) <= level) == pytest.approx(level, abs=error)
