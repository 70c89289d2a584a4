"""Same-frequency approximation of a string's counterfactual loss.

The counterfactual loss of a string is its loss after training without the string. Retraining
without each string is too expensive for whole datasets. Strings with similar probability under the
language tend to have similar losses. So unseen test strings stand in for a training string: their
loss approximates the counterfactual loss of the training string.

Source: Learning Without Memorizing Considered Infeasible, section 3.3.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from palimpsest.errors import UserError

# Relative difference at which two log probabilities count as equal. They are sums of many rounded
# terms, so equal values can differ by about 1e-14 of their size.
TIE = 1e-9


@dataclass(frozen=True)
class StandIns:
    """The test strings that stand in for each training string.

    `order` int[test] sorts the test strings by log probability. The stand-ins of training string i
    are `order[first[i]:stop[i]]`; `first` and `stop` are int[train]. `gap` float[train] is the
    distance between the log probabilities of a training string and its nearest stand-in, in nats.
    """

    order: np.ndarray
    first: np.ndarray
    stop: np.ndarray
    gap: np.ndarray

    def members(self, train: int) -> np.ndarray:
        """Indices of the test strings that stand in for one training string."""
        return self.order[self.first[train] : self.stop[train]]

    def median(self, loss: np.ndarray) -> np.ndarray:
        """Median float[epochs, train] of the stand-ins' losses, from float[epochs, test]."""
        by_log_prob = loss[:, self.order]
        windows, window_of = np.unique(
            np.stack([self.first, self.stop]), axis=1, return_inverse=True
        )
        first, length = windows[0], windows[1] - windows[0]
        medians = np.empty((len(loss), len(first)))
        # Windows of equal length form a rectangular array. There are few lengths and many windows.
        for size in np.unique(length):
            same = np.flatnonzero(length == size)
            members = first[same, None] + np.arange(size)
            medians[:, same] = np.median(by_log_prob[:, members], axis=2)
        return medians[:, window_of.ravel()]


def stand_ins(log_prob_train: ArrayLike, log_prob_test: ArrayLike) -> StandIns:
    """For every training string, all test strings with the nearest probability under the language.

    Distances that differ only by rounding errors are ties, and all ties stand in. They may lie on
    both sides of the training string's probability.

    Parameters
    ----------
    log_prob_train : float[train], nats
    log_prob_test : float[test], nats
        Of distinct test strings that are not in the training data (`candidates`).

    Raises
    ------
    UserError
        If there is no test string.
    ValueError
        If a log probability is not finite: the string is not in the language.

    Source: section 3.3; if several strings are nearest, the median of their losses.
    """
    train = np.asarray(log_prob_train, dtype=float)
    test = np.asarray(log_prob_test, dtype=float)
    if len(test) == 0:
        raise UserError(
            "no unseen test string can stand in for the training strings: every test string "
            "is also in the training data; use a larger test set, a smaller training size or "
            "a language with more strings"
        )
    if not (np.isfinite(train).all() and np.isfinite(test).all()):
        raise ValueError("log probabilities must be finite: a string is outside the language")
    order = np.argsort(test, kind="stable")
    ordered = test[order]
    right = np.searchsorted(ordered, train)
    gap = np.minimum(
        np.abs(train - ordered[np.maximum(right - 1, 0)]),
        np.abs(train - ordered[np.minimum(right, len(test) - 1)]),
    )
    # No test string is nearer than the gap, so all strings within the reach are at the gap.
    reach = gap + TIE * np.maximum(1.0, np.abs(train))
    first = np.searchsorted(ordered, train - reach, side="left")
    stop = np.searchsorted(ordered, train + reach, side="right")
    return StandIns(order, first, stop, gap)


def median_of_others(log_prob: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """Median float[epochs, test] of the stand-ins' losses, for the unseen test strings themselves.

    The stand-ins of an unseen string are chosen among the *other* unseen strings. A string that was
    never trained on cannot be memorised, so a measure that calls it memorised gives a false alarm.

    Parameters
    ----------
    log_prob : float[test], nats
        Of the candidates; there must be at least two.
    loss : float[epochs, test], nats per token

    Raises
    ------
    UserError
        If there is no other string.
    """
    medians = np.empty_like(loss, dtype=float)
    for i in range(len(log_prob)):
        others = stand_ins(log_prob[i : i + 1], np.delete(log_prob, i))
        medians[:, i] = others.median(np.delete(loss, i, axis=1))[:, 0]
    return medians


def candidates(strings: pd.DataFrame) -> np.ndarray:
    """bool[strings] of a table `strings`: the test strings that are not in the training data.

    These strings may stand in. A string with the split held-out may not: it is measured, but was
    not drawn as a test string.
    """
    return ((strings["split"] == "test") & (strings["count"] == 0)).to_numpy()
