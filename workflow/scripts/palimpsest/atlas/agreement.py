"""How well a measure agrees with exact retraining on the strings of one run, and on resamples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from palimpsest.atlas.kinds import AUC, RANK, TPR
from palimpsest.memorisation.leave_one_out import rank_correlation

FALSE_POSITIVES = 0.01
SHUFFLE_SEED = 0
FEWEST = 3  # strings without which there is no correlation
LAST = 1e100  # in place of what is infinite, which ranks after all others


@dataclass(frozen=True)
class Agreement:
    """A measure's values of strings beside the exact ones.

    Parameters
    ----------
    measured, exact : float[strings]; a string where one of them is NaN is left out of this measure,
        and of no other
    positive : bool[strings], the strings to be found; None if only their order is asked for
    n_shuffles : if not 0, the rank correlation is the mean over this number of random orders of
        the exact values: a placebo
    """

    measured: np.ndarray
    exact: np.ndarray
    positive: np.ndarray | None = None
    n_shuffles: int = 0

    def known(self) -> Agreement:
        known = ~(np.isnan(self.measured) | np.isnan(self.exact))
        sides = None if self.positive is None else self.positive[known]
        return Agreement(self.measured[known], self.exact[known], sides)

    @property
    def n_strings(self) -> int:
        return len(self.known().exact)

    def statistics(self, chance: np.random.Generator | None = None, n: int = 1) -> dict:
        """The statistics, float[n] each, of n resamples of the strings; without `chance`, of all.

        A statistic is NaN if one of the sides is all alike.
        """
        given = self.known()
        size = len(given.exact)
        if size < FEWEST:
            names = (RANK,) if self.positive is None else (RANK, AUC, TPR)
            return {name: np.full(n, np.nan) for name in names}
        measured, exact = (
            np.where(np.isinf(side), LAST, side) for side in (given.measured, given.exact)
        )
        if self.n_shuffles:
            orders = np.tile(exact, (self.n_shuffles, 1))
            orders = np.random.default_rng(SHUFFLE_SEED).permuted(orders, axis=1)
            found = rank_correlation(np.broadcast_to(measured, orders.shape), orders)
            return {RANK: np.full(n, found.mean())}
        rows = np.arange(size)[None] if chance is None else chance.integers(size, size=(n, size))
        measured, exact = measured[rows], exact[rows]
        found = {RANK: rank_correlation(measured, exact)}
        if self.positive is not None:
            sides = given.positive[rows]
            found |= {AUC: auc(measured, sides), TPR: tpr(measured, sides)}
        return found


@dataclass(frozen=True)
class MeanAgreement:
    """The mean over strings (columns) of a correlation over rows: removed strings, or halves.

    Parameters
    ----------
    measured, exact : float[rows, strings]; a row where one of them is NaN is left out of the string
    apart : bool[rows, strings]: the correlation is the mean of that over the rows where this is
        true and of that over the others; None for one correlation over all
    together : number of neighbouring rows that are drawn together: 2 for halves, which are pairs
    """

    measured: np.ndarray
    exact: np.ndarray
    apart: np.ndarray | None = None
    together: int = 1

    @property
    def n_strings(self) -> int:
        return self.exact.shape[1]

    def statistics(self, chance: np.random.Generator | None = None, n: int = 1) -> dict:
        """As those of `Agreement`, of resamples of both rows and strings.

        NaN if the correlation of one of the strings is undefined.
        """
        if chance is None:
            return {RANK: np.array([self.correlations().mean()])}
        n_blocks, n_columns = len(self.exact) // self.together, self.n_strings
        found = np.empty(n)
        for place in range(n):
            blocks = chance.integers(n_blocks, size=n_blocks)
            rows = (blocks[:, None] * self.together + np.arange(self.together)).ravel()
            of_rows = self.correlations(rows)
            found[place] = of_rows[chance.integers(n_columns, size=n_columns)].mean()
        return {RANK: found}

    def correlations(self, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """float[strings]: the correlation of each string, over some rows."""
        measured, exact = self.measured[rows], self.exact[rows]
        known = ~(np.isnan(measured) | np.isnan(exact))
        if self.apart is None:
            return correlation_of_columns(measured, exact, known)
        apart = self.apart[rows]
        sides = (correlation_of_columns(measured, exact, known & of) for of in (apart, ~apart))
        return np.mean(list(sides), axis=0)


def auc(score: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """float[n]: the area under the ROC curve of each of n samples; both are [n, strings].

    NaN without a positive or without a negative. Ties count half.
    """
    from scipy.stats import rankdata

    n_positive = positive.sum(axis=1)
    n_pairs = n_positive * (score.shape[1] - n_positive)
    ranks = np.where(positive, rankdata(score, axis=1), 0).sum(axis=1)
    above = ranks - n_positive * (n_positive + 1) / 2
    return np.divide(above, n_pairs, out=np.full(len(score), np.nan), where=n_pairs > 0)


def tpr(score: np.ndarray, positive: np.ndarray) -> np.ndarray:
    """float[n]: the share of positives above all negatives but 1 % of them, of each sample."""
    n_negative = (~positive).sum(axis=1)
    allowed = np.floor(FALSE_POSITIVES * n_negative).astype(int)
    negatives = -np.sort(np.where(positive, np.inf, -score), axis=1)
    limit = np.take_along_axis(negatives, np.minimum(allowed, score.shape[1] - 1)[:, None], axis=1)
    n_positive = positive.sum(axis=1)
    found = (positive & (score > limit)).sum(axis=1)
    both = (n_positive > 0) & (n_negative > 0)
    return np.divide(found, n_positive, out=np.full(len(score), np.nan), where=both)


def correlation_of_columns(
    measured: np.ndarray, exact: np.ndarray, known: np.ndarray
) -> np.ndarray:
    """float[columns]: Spearman's correlation over the known rows of each column.

    All are [rows, columns]. NaN with fewer than three known rows, and if one side is all alike.
    """
    from scipy.stats import rankdata

    n = np.maximum(known.sum(axis=0), 1)
    # What is not known ranks last, and is then left out.
    ranks = (rankdata(np.where(known, side, np.inf), axis=0) for side in (measured, exact))
    ranks = [np.where(known, of, 0.0) for of in ranks]
    one, other = (np.where(known, of - of.sum(axis=0) / n, 0.0) for of in ranks)
    spread = np.sqrt((one**2).sum(axis=0) * (other**2).sum(axis=0))
    found = np.full(len(n), np.nan)
    is_defined = (spread > 1e-9) & (n >= FEWEST)
    return np.divide((one * other).sum(axis=0), spread, out=found, where=is_defined)
