"""95 % intervals of shares of records, which come in groups."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from palimpsest.statistics import CONFIDENCE, Interval, wilson

FEWEST_KNOWN = 20  # groups of records with a known value, to bound others


def fewest_unseen(false_alarms: float) -> int:
    """How many records never trained on are needed for a p-value of at most `false_alarms`.

    The lowest p-value is that of a record whose loss is below the losses of all n of them, which is
    1 / (n + 1): so 19 for 0.05.
    """
    n = max(0, math.floor(1 / false_alarms) - 1)
    return n if 1 / (n + 1) <= false_alarms else n + 1


def newcombe(share: float, other: float, n: float, n_other: float) -> tuple[float, float]:
    """The 95 % interval of the difference of two shares of independent items; NaN if one is NaN.

    Records of one group are not independent. With the effective number of groups instead of that of
    records, the interval is right if records of a group are all alike, and otherwise too wide.

    Source: Newcombe, Interval Estimation for the Difference Between Independent Proportions (1998),
    method 10.
    """
    if not n or not n_other:
        return np.nan, np.nan
    return of_difference(
        Interval(share, *wilson(share, n)), Interval(other, *wilson(other, n_other))
    )


def of_difference(first: Interval, second: Interval) -> tuple[float, float]:
    """The 95 % interval of the difference of two independent estimates, from those of both.

    Source: see `newcombe`; the method needs no more than the two intervals.
    """
    difference = first.mean - second.mean
    return (
        difference - float(np.hypot(first.mean - first.lower, second.upper - second.mean)),
        difference + float(np.hypot(first.upper - first.mean, second.mean - second.lower)),
    )


def share_below_quantile(
    values: np.ndarray,
    others: np.ndarray,
    rank: int,
    n: float,
    n_others: float,
    level: float | None = None,
) -> Interval:
    """The share of values below a low quantile of others, with its 95 % interval.

    The quantile is estimated by the `rank`-th lowest of the others. Two errors add up as in
    `newcombe`: that of the share below a given threshold, by Wilson's interval, and that of the
    threshold, by fractional order statistics of the others. The share below a threshold that is
    between two of the others, or below the lowest, is interpolated.

    Parameters
    ----------
    values, others : float[any], float[any]
    rank : from 1
    n, n_others : the effective numbers of groups of both, see `newcombe`
    level : of the quantile; that of the rank by default, rank / (number of others + 1)
    """
    level = rank / (len(others) + 1) if level is None else level
    thresholds, counts = np.unique(others, return_counts=True)
    shares = np.searchsorted(np.sort(values), thresholds) / len(values)
    levels = counts.cumsum() / len(others) * n_others / (n_others + 1)
    share = float(shares[np.searchsorted(thresholds, np.partition(others, rank - 1)[rank - 1])])
    ends = quantile_levels(level, n_others)
    below, above = np.interp(ends, [0, *levels, 1], [0, *shares, 1])
    low, high = wilson(share, n)
    return Interval(
        share,
        max(0.0, share - float(np.hypot(share - low, max(0.0, share - below)))),
        min(1.0, share + float(np.hypot(high - share, max(0.0, above - share)))),
    )


@cache
def quantile_levels(level: float, n: float) -> tuple[float, float]:
    """The levels of the sample quantiles that are the 95 % interval of a quantile, of n values.

    Source: Hutson, Calculating nonparametric confidence intervals for quantiles using fractional
    order statistics (1999).
    """
    # Imported here, because Snakemake imports this module, and scipy loads slowly.
    from scipy.optimize import brentq
    from scipy.special import betainc

    def rank(confidence: float) -> float:
        """The fractional rank whose order statistic is below the quantile with this probability."""
        tiny = 1e-9
        return brentq(
            lambda r: betainc(r, n + 1 - r, level) - confidence, tiny, n + 1 - tiny, xtol=tiny
        )

    both = (1 + CONFIDENCE) / 2, (1 - CONFIDENCE) / 2
    return rank(both[0]) / (n + 1), rank(both[1]) / (n + 1)
