"""Epsilon written as plainly as can be: every attack is carried out, value by value."""

import itertools
import math

import numpy as np

DELTA = 1e-5


def of_rates(fpr, fnr, delta=DELTA):
    """Algorithm 2 for arrays of attacks: NaN for a discarded one, infinity for a perfect one."""
    with np.errstate(all="ignore"):
        one = np.log(1 - delta - fpr) - np.log(fnr)
        other = np.log(1 - delta - fnr) - np.log(fpr)
        values = np.fmax(one, other)
    values = np.where((fpr == 0) | (fnr == 0), np.nan, values)
    return np.where((fpr == 0) & (fnr == 0), np.inf, values)


def strongest(values):
    """The largest epsilon of all attacks, within [0, 50]; 0 if all are discarded."""
    values = [value for value in np.ravel(values) if not math.isnan(value)]
    return min(max([0.0, *values]), 50.0)


def every_interval(unlearned, retrained, delta=DELTA):
    """Epsilon of one example, over all intervals between two values and both verdicts inside."""
    values = sorted({*unlearned, *retrained})
    found = []
    for first, last in itertools.combinations_with_replacement(values, 2):
        # Said to be unlearned inside, and then to be retrained inside.
        missed = np.mean([not first <= value <= last for value in unlearned])
        taken = np.mean([first <= value <= last for value in retrained])
        found.append(of_rates(np.array(missed), np.array(taken), delta))
        taken = np.mean([first <= value <= last for value in unlearned])
        missed = np.mean([not first <= value <= last for value in retrained])
        found.append(of_rates(np.array(taken), np.array(missed), delta))
    return strongest(found)


def grid(unlearned, retrained, delta=DELTA):
    """One example, the attacks of the released scoring code, one threshold after the other.

    A plain reimplementation with the same thresholds; nothing is copied from that code.
    """
    spans = np.ptp(unlearned), np.ptp(retrained)
    if min(spans) < 0.01 * max(spans):
        return 50.0
    high, low = unlearned, retrained
    if np.median(retrained) > np.median(unlearned):
        high, low = retrained, unlearned
    found = []
    pool = np.concatenate([unlearned, retrained])
    for threshold in np.linspace(pool.min(), pool.max(), math.ceil(100 * np.ptp(pool))):
        found.append(of_rates(np.mean(low >= threshold), np.mean(high < threshold), delta))
    narrow, wide = (high, low) if np.ptp(high) < np.ptp(low) else (low, high)
    width, most = np.ptp(narrow), narrow.max()
    for right in np.linspace(most - 2, most + 2, math.ceil(100 * (most + 2 - (most - 2)))):
        left = np.linspace(right - width - 2, right - width + 2, 400)[:, None]
        taken = np.mean((left <= wide) & (wide <= right), axis=1)
        missed = np.mean(~((left <= narrow) & (narrow <= right)), axis=1)
        found.append(strongest(of_rates(taken, missed, delta)))
    return strongest(np.hstack(found))
