"""Laplace's approximation of a logistic model with random intercepts, and its slope.

`mixedlm` has the same likelihood, but its logistic fits cannot be relied on here. Of the 20 fits of
the default study, its Newton's steps to the mode, which are never halved, ran off in 6. In 6 other
fits, its fast search (L-BFGS-B with numerical slopes) called itself converged at deviances that are
0.3 to 0.5 too high. In the 14 fits that its default search solves, the deviances equal ours
(tests/density/test_laplace.py compares the estimates), but a fit takes ten times as long.

The levels of the intercept with most levels are eliminated: no row has two of them, so their part
of the information matrix is diagonal. The others' part has few columns.

Source: Bates et al., Fitting linear mixed-effects models using lme4 (2015), for spherical random
effects u and their relative standard deviations theta; Bates, Computational methods for mixed
models (lme4 vignette), for the approximation.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import linalg, optimize

MOST_STEPS_TO_MODE, MODE_FOUND = 100, 1e-11
# A search ends where a step lowers the deviance by less than this share of it.
SEARCH_ENDS = 1e-9
# Deviances that differ by less are equal: then a standard deviation of 0 is as good as a small one.
EQUAL = 1e-5
SMALLEST_START = 0.1  # standard deviation of a random intercept, in log odds


class Information(NamedTuple):
    """The information matrix of u at some weights, in blocks: the large intercept and the others.

    Attributes
    ----------
    diagonal : float[large]
    cross : float[large, others]
    factor : Cholesky factor of the others' block, once the large intercept is eliminated
    """

    diagonal: np.ndarray
    cross: np.ndarray
    factor: tuple

    def solve(self, large: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The inverse times a vector, given and returned in two parts."""
        left = others - self.cross.T @ (large / self.diagonal)
        found = linalg.cho_solve(self.factor, left, check_finite=False)
        return (large - self.cross @ found) / self.diagonal, found

    def inverse_of_others(self) -> np.ndarray:
        return linalg.cho_solve(self.factor, np.eye(self.cross.shape[1]), check_finite=False)

    def log_determinant(self) -> float:
        return np.log(self.diagonal).sum() + 2 * np.log(np.diag(self.factor[0])).sum()


class Laplace:
    """Minus twice the log likelihood of right answers, as a function of (theta, beta).

    Parameters
    ----------
    outcome : float[rows]; 0 or 1
    terms : float[rows, terms]; with the column of ones
    levels : sequence of int[rows]
        The levels of each random intercept, from 0; at least one intercept.
    """

    def __init__(self, outcome: np.ndarray, terms: np.ndarray, levels: Sequence[np.ndarray]):
        counts = np.array([codes.max() + 1 for codes in levels])
        self.outcome, self.terms, self.n = outcome, terms, len(levels)
        self.large = int(counts.argmax())
        self.rest = np.delete(np.arange(self.n), self.large)
        self.owner = np.repeat(self.rest, counts[self.rest])
        self.n_large, self.n_others = counts[self.large], len(self.owner)
        self.codes = levels[self.large]
        starts = np.cumsum(counts[self.rest]) - counts[self.rest]
        # The place of each row's levels among all levels of the others, and in blocks
        self.places = (
            np.stack([levels[k] for k in self.rest], axis=1) + starts
            if len(self.rest)
            else np.empty((len(outcome), 0), dtype=int)
        )
        self.in_cross = self.codes[:, None] * self.n_others + self.places
        self.in_inner = self.places[:, :, None] * self.n_others + self.places[:, None, :]
        # The search moves little, so the last mode is near the next one.
        self.mode = np.zeros(self.n_large), np.zeros(self.n_others)

    def __call__(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """The deviance at (theta, beta), and its slope float[intercepts + terms]."""
        theta, beta = parameters[: self.n], parameters[self.n :]
        distance, right, weights, information = self._find_mode(theta, self.terms @ beta)
        large, rest = theta[self.large], theta[self.rest]
        (u, v), left = self.mode, self.outcome - right
        inverse = information.inverse_of_others()
        ratio = information.cross / information.diagonal[:, None]
        product = ratio @ inverse
        # Rows of the inverse times a row's own column, at the levels of that row
        inner = inverse.ravel()[self.in_inner] @ rest
        mixed = product.ravel()[self.in_cross]
        squares = (product * ratio).sum(axis=1)[self.codes]
        at_others = inner - large * mixed
        at_large = large / information.diagonal[self.codes] - mixed @ rest + large * squares
        leverage = large * at_large + at_others @ rest
        # How the log determinant changes as the log odds of a row do
        bend = weights * (1 - 2 * right) * leverage
        c, d = information.solve(*self._by_level(theta, bend))
        total = bend - weights * self._at_rows(theta, c, d) - 2 * left
        slope = np.empty(len(parameters))
        slope[self.n :] = self.terms.T @ total
        slope[self.large] = u[self.codes] @ total + c[self.codes] @ left + 2 * weights @ at_large
        slope[self.rest] = total @ v[self.places] + left @ d[self.places] + 2 * weights @ at_others
        return distance + information.log_determinant(), slope

    def _find_mode(self, theta: np.ndarray, fixed: np.ndarray):
        """Newton's steps to the most probable u, each halved until it is downhill.

        Returns the penalised deviance, the probabilities of right answers, their variances, and the
        information; the mode is kept.
        """
        u, v = self.mode
        distance, right = self._distance(theta, fixed, u, v)
        for _ in range(MOST_STEPS_TO_MODE):
            weights = right * (1 - right)
            information = self._information(theta, weights)
            large, others = self._by_level(theta, self.outcome - right)
            large, others = large - u, others - v
            steps = information.solve(large, others)
            if large @ steps[0] + others @ steps[1] < MODE_FOUND:
                break
            size, before = 1.0, distance
            for size in 0.5 ** np.arange(20):
                trial = u + size * steps[0], v + size * steps[1]
                distance, right = self._distance(theta, fixed, *trial)
                if distance <= before:
                    break
            u, v = trial
        self.mode = u, v
        return distance, right, weights, information

    def _distance(self, theta, fixed, u, v) -> tuple[float, np.ndarray]:
        """Minus twice the log likelihood given u, with the penalty; and the probabilities."""
        log_odds = fixed + self._at_rows(theta, u, v)
        misfit = np.logaddexp(0, log_odds) - self.outcome * log_odds
        return 2 * misfit.sum() + u @ u + v @ v, 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))

    def _at_rows(self, theta, u, v) -> np.ndarray:
        """The random effects float[rows] of the levels of each row."""
        return theta[self.large] * u[self.codes] + v[self.places] @ theta[self.rest]

    def _by_level(self, theta, values) -> tuple[np.ndarray, np.ndarray]:
        """Sums of values float[rows] over the rows of each level, times its theta."""
        large = np.bincount(self.codes, values, self.n_large)
        repeated = np.repeat(values, len(self.rest))
        others = np.bincount(self.places.ravel(), repeated, self.n_others)
        return theta[self.large] * large, theta[self.owner] * others

    def _information(self, theta, weights) -> Information:
        n, large, others = len(self.rest), theta[self.large], theta[self.owner]
        diagonal = 1 + large**2 * np.bincount(self.codes, weights, self.n_large)
        shape = self.n_large, self.n_others
        cross = np.bincount(self.in_cross.ravel(), np.repeat(weights, n), np.prod(shape))
        cross = large * others * cross.reshape(shape)
        inner = np.bincount(self.in_inner.ravel(), np.repeat(weights, n * n), self.n_others**2)
        inner = np.outer(others, others) * inner.reshape(self.n_others, self.n_others)
        inner += np.eye(self.n_others) - cross.T @ (cross / diagonal[:, None])
        return Information(diagonal, cross, linalg.cho_factor(inner, check_finite=False))

    def std_errors(self, parameters: np.ndarray) -> np.ndarray:
        """Standard errors float[terms] of beta at (theta, beta), given theta.

        Infinite if the likelihood is flat in some direction.
        """
        theta, beta = parameters[: self.n], parameters[self.n :]
        _, _, weights, information = self._find_mode(theta, self.terms @ beta)
        weighted = self.terms * weights[:, None]
        sums = [self._by_level(theta, column) for column in weighted.T]
        solved = [self._at_rows(theta, *information.solve(*both)) for both in sums]
        inner = weighted.T @ (self.terms - np.column_stack(solved))
        try:
            return np.sqrt(np.diag(np.linalg.inv(inner)))
        except np.linalg.LinAlgError:
            return np.full(len(beta), np.inf)

    def right(self, parameters: np.ndarray) -> np.ndarray:
        """Probabilities of right answers float[rows], with the random intercepts."""
        return self._find_mode(parameters[: self.n], self.terms @ parameters[self.n :])[1]


def search(model: Laplace, start: np.ndarray, most_steps: int) -> tuple[np.ndarray, bool]:
    """The most probable (theta, beta), and whether the search ended before `most_steps`.

    At a standard deviation of 0 the slope is 0, whether or not a positive one is more probable. So
    each small standard deviation is compared with 0 and with a positive one.
    """
    bounds = [(0, None)] * model.n + [(None, None)] * model.terms.shape[1]
    options = {"ftol": SEARCH_ENDS, "gtol": 1e-3, "maxiter": most_steps, "maxcor": 20}
    for _ in range(1 + model.n):
        found = optimize.minimize(
            model, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
        )
        best, start = (found.x, found.fun), None
        for place in np.flatnonzero(found.x[: model.n] < SMALLEST_START):
            for spread in (0.0, SMALLEST_START):
                trial = best[0].copy()
                trial[place] = spread
                deviance = model(trial)[0]
                if spread == 0 and deviance < best[1] + EQUAL:
                    best = trial, deviance
                elif spread > 0 and deviance < best[1] - EQUAL:
                    best = start, _ = trial, deviance
        if start is None:
            break
    return best[0], bool(found.success and start is None)
