"""Intervals of numbers that rest on groups of records, and perhaps on several models.

A number is replaced by its linear approximation: a sum of influences of records and of models, with
a mean of 0. Sources of variance are independent, such as groups of records and retrained models.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from palimpsest.statistics import CONFIDENCE, NO_INTERVAL, Interval, is_constant
from palimpsest.unlearning.evaluate.gaps import satterthwaite


class Source(NamedTuple):
    """The variance of a number from one source, and how many items the source has."""

    variance: float
    n: int


def of_groups(influence: np.ndarray, group: np.ndarray) -> Source:
    """The variance from groups whose records are not independent.

    `influence` is float[records], by how much each record moves the number; it has a mean of 0.
    """
    _, of_record = np.unique(group.astype(str), return_inverse=True)
    sums = np.bincount(of_record, influence)
    n = len(sums)
    return Source(np.square(sums).sum() * n / (n - 1) if n > 1 else np.nan, n)


def of_models(influence: np.ndarray) -> Source:
    """The variance from models, float[models] each by how much it would move the number alone."""
    n = len(influence)
    return Source(influence.var(ddof=1) / n if n > 1 else np.nan, n)


def interval(value: float, sources: Sequence[Source]) -> Interval:
    """Student's interval of 95 % with Satterthwaite's degrees of freedom; no ends if a variance
    is not known.
    """
    from scipy.special import stdtrit

    variances, sizes = (np.array(values, dtype=float) for values in zip(*sources, strict=True))
    if np.isnan([value, *variances]).any():
        return Interval(value, np.nan, np.nan)
    quantile = stdtrit(satterthwaite(variances, sizes), (1 + CONFIDENCE) / 2)
    reach = float(quantile * np.sqrt(variances.sum()))
    return Interval(value, value - reach, value + reach)


def grouped_mean(values: np.ndarray, group: np.ndarray) -> Interval:
    """The mean of float[records] with its interval over groups; all NaN without records.

    Values that are all equal have no interval: they show a limit, and not certainty.
    """
    if not len(values):
        return NO_INTERVAL
    mean = float(values.mean())
    if is_constant(values):
        return Interval(mean, np.nan, np.nan)
    return interval(mean, [of_groups((values - mean) / len(values), group)])
