"""How well a measure agrees with exact retraining on the strings of one run, and on resamples."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from palimpsest.atlas.kinds import AUC, RANK, TPR
from palimpsest.memorisation.leave_one_out import rank_correlation

FALSE_POSITIVES = 0.01
FEWEST = 3  # strings without which there is no correlation
LAST = 1e100  # in place of what is infinite, which ranks after all others


@dataclass(frozen=True)
class Agreement:
    """A measure's values of strings beside the exact ones.

    Parameters
    ----------
    measured, exact : float[strings]; a string where one of them is NaN is left out of this measure,
        and of no other
    positive : bool[strings], the strings that are memorised by retraining; None if the question is
        about the order of the strings only
    """

    measured: np.ndarray
    exact: np.ndarray
    positive: np.ndarray | None = None

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
        rows = np.arange(size)[None] if chance is None else chance.integers(size, size=(n, size))
        measured, exact = (
            np.where(np.isinf(side), LAST, side)[rows] for side in (given.measured, given.exact)
        )
        found = {RANK: rank_correlation(measured, exact)}
        if self.positive is not None:
            sides = given.positive[rows]
            found |= {AUC: auc(measured, sides), TPR: tpr(measured, sides)}
        return found


@dataclass(frozen=True)
class MeanAgreement:
    """The mean over strings of a correlation that each string has of its own, float[strings]."""

    correlations: np.ndarray

    @property
    def n_strings(self) -> int:
        return len(self.correlations)

    def statistics(self, chance: np.random.Generator | None = None, n: int = 1) -> dict:
        """As those of `Agreement`; NaN if one of the correlations is undefined."""
        size = len(self.correlations)
        rows = np.arange(size)[None] if chance is None else chance.integers(size, size=(n, size))
        return {RANK: self.correlations[rows].mean(axis=1)}


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


def correlation_of_columns(measured: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """float[columns]: Spearman's correlation of each pair of columns of float[rows, columns].

    Rows where one of the two is NaN are left out of the column.
    """
    return np.array(
        [
            Agreement(of, true).statistics()[RANK][0]
            for of, true in zip(measured.T, exact.T, strict=True)
        ]
    )
