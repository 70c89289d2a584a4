"""P-values of regressions by exchanging strings: what if other strings had been leaked?

The rows of a string are dependent. A model with random intercepts knows that a string is easy or
hard, and that a run is good or bad. It does not know that a string may gain or lose in half of the
runs, because a training string near it made room for a planted one. So its p-values are too small
for what is leaked in whole runs (tests/benchmarks/bench_regressions.py has the numbers). Exchanging
whole strings, with all their runs, assumes nothing about the rows of a string.

Source: Freedman and Lane, A nonstochastic interpretation of reported significance levels (1983),
for a term given others; Ernst, Permutation methods (2004).
"""

from typing import NamedTuple

import numpy as np

from palimpsest.density.mixed_models import NO_SPREAD, Fit


class Design(NamedTuple):
    """Rows sorted by unit and run: every unit has one row for each of the same runs.

    Attributes
    ----------
    strata : int[units]
        Units are exchanged only inside a stratum.
    n_runs : int
    """

    strata: np.ndarray
    n_runs: int


def exchanges(strata: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Random orders int[n, units], each of which moves units only inside their stratum."""
    chance = np.random.default_rng([seed, len(strata)])
    codes = np.unique(strata, return_inverse=True)[1]
    places = np.argsort(codes, kind="stable")
    found = np.empty((n, len(codes)), dtype=np.int64)
    found[:, places] = np.argsort(codes + chance.random((n, len(codes))), axis=1)
    return found


class Null:
    """The model without terms, of a linear or a logistic outcome, and scores of terms under it.

    A score is the slope of the likelihood in the direction of a term. For one term, it is the sum
    over rows of the term times what is left of the outcome.
    """

    def __init__(self, fit: Fit, outcome: np.ndarray, intercepts: dict[str, np.ndarray]):
        is_linear = np.isfinite(fit.residual)
        self.weights = (
            np.full(len(outcome), fit.residual**-2) if is_linear else fit.fitted * (1 - fit.fitted)
        )
        # The conditional residuals in these units are the inverse covariance times the marginal
        # ones, by the equations of the mixed model.
        left = outcome - fit.fitted
        self.left = left * self.weights if is_linear else left
        spreads = {name: spread for name, spread in fit.spreads.items() if spread > NO_SPREAD}
        self.levels = np.column_stack(
            [np.ones((len(outcome), 0)), *(_indicators(intercepts[name]) for name in spreads)]
        )
        inverse = np.concatenate(
            [[], *(np.full(np.ptp(intercepts[n]) + 1, spreads[n] ** -2.0) for n in spreads)]
        )
        weighted = self.levels * self.weights[:, None]
        self.inner = np.linalg.inv(self.levels.T @ weighted + np.diag(inverse))
        ones = np.ones((len(outcome), 1))
        self.of_one = self._inverse_covariance(ones)

    def _inverse_covariance(self, columns: np.ndarray) -> np.ndarray:
        """The inverse covariance of the outcome times columns, by Woodbury's identity."""
        weighted = columns * self.weights[:, None]
        return weighted - self.weights[:, None] * (
            self.levels @ (self.inner @ (self.levels.T @ weighted))
        )

    def project(self, columns: np.ndarray) -> np.ndarray:
        """The same, without the part that an intercept explains."""
        found = self._inverse_covariance(columns)
        return found - self.of_one * (found.sum(axis=0) / self.of_one.sum())

    def p_values(self, terms: np.ndarray, design: Design, orders: np.ndarray) -> np.ndarray:
        """Two-sided p-values float[terms] of each term given the others.

        What other terms explain of a term, and of the outcome, is taken away first. With one term
        and strings that are leaked at random, the p-value is exact. NaN if no exchange changes
        anything. `terms` is float[rows, terms] and `orders` is made by `exchanges`.
        """
        projected = self.project(terms)
        found = []
        for place in range(terms.shape[1]):
            own, left = terms[:, place], self.left
            if terms.shape[1] > 1:
                others = np.delete(terms, place, axis=1)
                of_others = np.delete(projected, place, axis=1)
                inner = others.T @ of_others
                own = own - others @ np.linalg.solve(inner, of_others.T @ own)
                left = left - of_others @ np.linalg.solve(inner, others.T @ left)
            found.append(_p_value(own, left, design, orders))
        return np.array(found)


def _p_value(term: np.ndarray, left: np.ndarray, design: Design, orders: np.ndarray) -> float:
    """Share of exchanges whose score is as far from its mean as the observed one."""
    shape = len(design.strata), design.n_runs
    products = (term - term.mean()).reshape(shape) @ left.reshape(shape).T
    scores = products[orders, np.arange(len(products))].sum(axis=1)
    observed = np.trace(products)
    # The mean over all exchanges: every unit of a stratum in every place of it
    same = design.strata[:, None] == design.strata
    mean = (products * same / same.sum(axis=1)).sum()
    far, rounding = np.abs(scores - mean), 1e-9 * np.abs(products).sum()
    if far.max() <= rounding:
        return np.nan
    return (1 + (far >= abs(observed - mean) - rounding).sum()) / (1 + len(orders))


def _indicators(codes: np.ndarray) -> np.ndarray:
    """0 or 1 float[rows, levels]."""
    return (codes[:, None] == np.arange(codes.max() + 1)).astype(float)
