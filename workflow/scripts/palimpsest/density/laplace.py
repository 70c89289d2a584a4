"""Laplace's approximation of a logistic model with random intercepts, and its slope.

`mixedlm` has the same likelihood, but differentiates it numerically. On our data its fast search
stopped early in one of three fits, or ran into numbers that are not finite, and its slow search
took ten times as long. With the slope, a search is fast and ends where the slope is 0.

The levels of the intercept with most levels are eliminated: no row has two of them, so their part
of the information matrix is diagonal.

Source: Bates et al., Fitting linear mixed-effects models using lme4 (2015), for spherical random
effects u and their relative standard deviations theta; Bates, Computational methods for mixed
models (lme4 vignette, 2011), section 5, for the approximation.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import linalg, sparse

MOST_STEPS_TO_MODE, MODE_FOUND = 100, 1e-9


class Information(NamedTuple):
    """The information matrix of u at some weights, in blocks: large intercept and the others.

    Attributes
    ----------
    diagonal : float[large]
    cross : float[large, others]
    factor
        Cholesky factor of what is left of the others' block.
    """

    diagonal: np.ndarray
    cross: np.ndarray
    factor: tuple

    def solve(self, large: np.ndarray, others: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The inverse times a vector, given and returned in two parts."""
        left = others - self.cross.T @ (large / self.diagonal)
        found = linalg.cho_solve(self.factor, left, check_finite=False)
        return (large - self.cross @ found) / self.diagonal, found

    def log_determinant(self) -> float:
        """Of the whole matrix."""
        return np.log(self.diagonal).sum() + 2 * np.log(np.diag(self.factor[0])).sum()


class Laplace:
    """Minus twice the log likelihood of right answers, as a function of (theta, beta).

    Parameters
    ----------
    outcome : float[rows]
        0 or 1.
    terms : float[rows, terms]
        With the column of ones.
    levels : sequence of int[rows]
        The levels of each random intercept, from 0.
    """

    def __init__(self, outcome: np.ndarray, terms: np.ndarray, levels: Sequence[np.ndarray]):
        self.outcome, self.terms, self.n = outcome, terms, len(levels)
        counts = [codes.max() + 1 for codes in levels]
        self.large = int(np.argmax(counts))
        self.rest = [place for place in range(self.n) if place != self.large]
        self.codes = levels[self.large]
        ones, rows = np.ones(len(outcome)), np.arange(len(outcome))
        self.sums = sparse.csr_matrix((ones, (self.codes, rows)))
        self.parts = [(levels[k][:, None] == np.arange(counts[k])) * 1.0 for k in self.rest]
        self.others = np.column_stack([np.empty((len(outcome), 0)), *self.parts])
        self.owner = np.repeat(self.rest, [counts[k] for k in self.rest]).astype(int)
        # The last mode: the search moves little, so it is near the next one.
        self.mode = np.zeros(counts[self.large]), np.zeros(len(self.owner))

    def __call__(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """The deviance at (theta, beta), and its slope float[intercepts + terms]."""
        theta, beta = parameters[: self.n], parameters[self.n :]
        scale, scaled = theta[self.large], self.others * theta[self.owner]
        fixed = self.terms @ beta
        distance, right, weights, information = self._find_mode(fixed, scale, scaled)
        u, v = self.mode
        left = self.outcome - right
        cross = information.cross / information.diagonal[:, None]
        # What is left of a row's others without its level of the large intercept
        apart = scaled - scale * cross[self.codes]
        solved = linalg.cho_solve(information.factor, apart.T, check_finite=False).T
        leverage = scale**2 / information.diagonal[self.codes] + (solved * apart).sum(axis=1)
        bend = weights * (1 - 2 * right) * leverage
        c, d = information.solve(scale * (self.sums @ bend), scaled.T @ bend)
        total = bend - weights * (scale * c[self.codes] + scaled @ d) - 2 * left
        own = scale - (information.cross[self.codes] * solved).sum(axis=1)
        slope = np.empty(len(parameters))
        slope[self.n :] = self.terms.T @ total
        slope[self.large] = (
            u[self.codes] @ total
            + 2 * weights @ (own / information.diagonal[self.codes])
            + c[self.codes] @ left
        )
        of_levels = (
            v * (self.others.T @ total)
            + 2 * (self.others * solved).T @ weights
            + d * (self.others.T @ left)
        )
        for place in self.rest:
            slope[place] = of_levels[self.owner == place].sum()
        return distance + information.log_determinant(), slope

    def _find_mode(self, fixed, scale, scaled):
        """Newton's steps to the most probable u, each halved until it is downhill.

        Returns the penalised deviance, the probabilities of right answers, their variances, and the
        information; the mode is kept.
        """
        u, v = self.mode
        distance, right = self._distance(fixed, scale, scaled, u, v)
        for _ in range(MOST_STEPS_TO_MODE):
            weights, left = right * (1 - right), self.outcome - right
            information = self._information(weights, scale, scaled)
            slopes = scale * (self.sums @ left) - u, scaled.T @ left - v
            steps = information.solve(*slopes)
            gain = slopes[0] @ steps[0] + slopes[1] @ steps[1]
            if gain < MODE_FOUND:
                break
            size = 1.0
            while True:
                trial = u + size * steps[0], v + size * steps[1]
                new, new_right = self._distance(fixed, scale, scaled, *trial)
                if new <= distance or size < 1e-6:
                    break
                size /= 2
            (u, v), distance, right = trial, new, new_right
        self.mode = u, v
        return distance, right, weights, information

    def _distance(self, fixed, scale, scaled, u, v) -> tuple[float, np.ndarray]:
        """Minus twice the log likelihood given u, with the penalty; and the probabilities."""
        log_odds = fixed + scale * u[self.codes] + scaled @ v
        fit = np.logaddexp(0, log_odds) - self.outcome * log_odds
        right = 1 / (1 + np.exp(-np.clip(log_odds, -500, 500)))
        return 2 * fit.sum() + u @ u + v @ v, right

    def _information(self, weights, scale, scaled) -> Information:
        """The information matrix."""
        weighted = scaled * weights[:, None]
        diagonal = 1 + scale**2 * (self.sums @ weights)
        cross = scale * (self.sums @ weighted)
        inner = np.eye(scaled.shape[1]) + scaled.T @ weighted - cross.T @ (cross / diagonal[:, None])
        return Information(diagonal, cross, linalg.cho_factor(inner, check_finite=False))
