"""P-values and intervals of regressions by exchanging strings: what if others had been leaked?

It is a permutation test. The rows of a string are dependent. A model with random intercepts knows
that a string is easy or hard, and that a run is good or bad. It does not know that a string may
gain or lose in half of the runs, because a training string near it made room for a planted one. So
its p-values are too small for what is leaked in whole runs (tests/benchmarks/bench_regressions.py
has the numbers). Exchanging whole strings, with all their runs, assumes nothing about the rows of a
string.

Source: Freedman and Lane, A nonstochastic interpretation of reported significance levels (1983),
for a term given others; Ernst, Permutation methods (2004), for p-values and for intervals.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from palimpsest.density.mixed_models import NO_SPREAD, Fit
from palimpsest.statistics import CONFIDENCE, NO_INTERVAL, Interval


class Exchanges:
    """Orders of units; each one moves units only inside their stratum.

    Rows are sorted by unit and run: every unit has one row for each of the same runs. `strata` is
    int[units], and `orders` is int[orders, units] (see `random_orders`).
    """

    def __init__(self, strata: np.ndarray, n_runs: int, orders: np.ndarray):
        self.shape = len(strata), n_runs
        self.n = len(orders)
        # The cell of each unit and its place after an exchange, in a matrix of units by units
        self.cells = orders * len(strata) + np.arange(len(strata))
        same = strata[:, None] == strata
        self.share = same / same.sum(axis=1)

    def scores(self, term: np.ndarray, left: np.ndarray) -> tuple[float, np.ndarray, float]:
        """Observed score, scores float[orders] after exchanges, and the size of rounding errors.

        A score is the sum over rows of the term times what is left of the outcome, both
        float[rows]. Its mean over all exchanges is subtracted.
        """
        products = (term - term.mean()).reshape(self.shape) @ left.reshape(self.shape).T
        scores = products.ravel().take(self.cells).sum(axis=1)
        # The mean over all exchanges: every unit of a stratum in every place of the stratum
        mean = (products * self.share).sum()
        return np.trace(products) - mean, scores - mean, 1e-9 * np.abs(products).sum()


def random_orders(strata: np.ndarray, n: int, seed: int) -> np.ndarray:
    """Random orders int[n, units]; each one moves units only inside their stratum."""
    chance = np.random.default_rng([seed, len(strata)])
    codes = np.unique(strata, return_inverse=True)[1]
    places = np.argsort(codes, kind="stable")
    found = np.empty((n, len(codes)), dtype=np.int64)
    found[:, places] = np.argsort(codes + chance.random((n, len(codes))), axis=1)
    return found


class Term(NamedTuple):
    """A term beyond the other terms of its regression; all are float[rows].

    Attributes
    ----------
    own : what the others do not explain of the term
    weighted : the inverse covariance of the outcome times `own`
    left : the inverse covariance times what is left of the outcome
    """

    own: np.ndarray
    weighted: np.ndarray
    left: np.ndarray


class Scores:
    """A fitted model, linear or logistic, and the scores of terms at the fit.

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
        """The inverse covariance of the outcome times `columns`, by Woodbury's identity."""
        weighted = columns * self.weights[:, None]
        return weighted - self.weights[:, None] * (
            self.levels @ (self.inner @ (self.levels.T @ weighted))
        )

    def project(self, columns: np.ndarray) -> np.ndarray:
        """The inverse covariance times `columns`, without the part that an intercept explains."""
        found = self._inverse_covariance(columns)
        return found - self.of_one * (found.sum(axis=0) / self.of_one.sum())

    def each_given_others(self, terms: np.ndarray) -> Iterator[Term]:
        """Every term of a regression, float[rows, terms], beyond the others.

        What the others explain is taken away from the term and from the outcome.
        """
        projected = self.project(terms)
        for place in range(terms.shape[1]):
            own, weighted = terms[:, place], projected[:, place]
            others, of_others = (np.delete(each, place, axis=1) for each in (terms, projected))
            inner = others.T @ of_others
            explained = np.linalg.solve(inner, of_others.T @ own)
            left = self.left - of_others @ np.linalg.solve(inner, others.T @ self.left)
            yield Term(own - others @ explained, weighted - of_others @ explained, left)

    def p_values(self, terms: np.ndarray, exchanges: Exchanges) -> np.ndarray:
        """Two-sided p-values float[terms] of each term given the others, at a fit without terms.

        With one term and strings that are leaked at random, the p-value is exact. NaN if no
        exchange changes anything. `terms` is float[rows, terms].
        """
        found = []
        for term in self.each_given_others(terms):
            observed, scores, rounding = exchanges.scores(term.own, term.left)
            far = np.abs(scores)
            is_fixed = far.max() <= rounding
            extreme = (1 + (far >= abs(observed) - rounding).sum()) / (1 + exchanges.n)
            found.append(np.nan if is_fixed else extreme)
        return np.array(found)

    def intervals(
        self, terms: np.ndarray, estimates: np.ndarray, exchanges: Exchanges
    ) -> list[Interval]:
        """The 95 % interval of each term given the others, at a fit with all terms.

        An interval holds the effects that exchanging strings does not reject: if such an effect is
        taken from the outcome, at least 5 % of exchanges have a score as far from the mean of all
        exchanges as the observed one. Its `mean` is the effect at which the observed score is this
        mean: it compares strings of one stratum with each other. `estimates` float[terms], those
        of the fit, compare strata as well. For a logistic outcome, a score is taken to be a
        straight line around the estimate.

        All NaN if no exchange changes anything; ends are infinite if nothing bounds the effect.
        """
        found = []
        for term, estimate in zip(self.each_given_others(terms), estimates, strict=True):
            observed, scores, rounding = exchanges.scores(term.own, term.left)
            slope, slopes, rounding_of_slope = exchanges.scores(term.own, term.weighted)
            if np.abs(scores).max() <= rounding or slope <= rounding_of_slope:
                found.append(NO_INTERVAL)
                continue
            lower, upper = _kept(observed, scores, slope, slopes)
            mean = estimate + observed / slope
            found.append(Interval(mean, estimate - upper, estimate - lower))
        return found


def _kept(
    observed: float, scores: np.ndarray, slope: float, slopes: np.ndarray
) -> tuple[float, float]:
    """The lowest and the highest shift of the effect that exchanges do not reject.

    A shift d changes the observed score to `observed` + d `slope`, and those of exchanges in the
    same way. Each exchange is at least as far from 0 between two shifts, where the lines cross.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        crossings = np.array(
            [(scores - observed) / (slope - slopes), -(scores + observed) / (slope + slopes)]
        )
    # An exchange that changes nothing is as far from 0 as the observed order, at every shift.
    crossings[:, ~np.isfinite(crossings).all(axis=0)] = np.array([[-np.inf], [np.inf]])
    # Number of exchanges that must be as far, in addition to the observed order.
    n = int(np.ceil((1 - CONFIDENCE) * (1 + len(scores)) - 1e-9)) - 1
    if n < 1:
        return -np.inf, np.inf
    low, high = np.sort(crossings.min(axis=0)), np.sort(crossings.max(axis=0))
    return low[n - 1], high[-n]


def _indicators(codes: np.ndarray) -> np.ndarray:
    """0 or 1 float[rows, levels]."""
    return (codes[:, None] == np.arange(codes.max() + 1)).astype(float)
