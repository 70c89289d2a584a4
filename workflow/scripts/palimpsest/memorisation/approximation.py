"""Same-frequency approximation: what a string's loss would be had it not been trained on.

Retraining without each string is out of reach for whole datasets. Strings of similar probability
under the language tend to yield similar losses, so unseen test strings stand in for a training
string: their loss approximates its counterfactual loss.

Source: Learning Without Memorizing Considered Infeasible, section 3.3.
"""

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from palimpsest.errors import UserError

# Log probabilities are sums of many rounded terms: equal ones differ by about 1e-14 of their size.
TIE = 1e-9


@dataclass(frozen=True)
class StandIns:
    """The test strings that stand in for each training string.

    They are contiguous in `order` int[test], the test strings by log probability: those from
    `first` up to, not including, `stop`, both int[train]. `gap` float[train] is the distance of
    the nearest of them in log probability, nats.
    """

    order: np.ndarray
    first: np.ndarray
    stop: np.ndarray
    gap: np.ndarray

    def members(self, train: int) -> np.ndarray:
        """Positions among the test strings of those that stand in for one training string."""
        return self.order[self.first[train] : self.stop[train]]

    def median(self, loss: np.ndarray) -> np.ndarray:
        """Median float[epochs, train] of the stand-ins' losses, from float[epochs, test]."""
        by_log_prob = loss[:, self.order]
        windows, window_of = np.unique(
            np.stack([self.first, self.stop]), axis=1, return_inverse=True
        )
        first, length = windows[0], windows[1] - windows[0]
        medians = np.empty((len(loss), len(first)))
        # Windows of one length make one rectangular array: few lengths, many windows.
        for size in np.unique(length):
            same = np.flatnonzero(length == size)
            members = first[same, None] + np.arange(size)
            medians[:, same] = np.median(by_log_prob[:, members], axis=2)
        return medians[:, window_of.ravel()]


def stand_ins(log_prob_train: ArrayLike, log_prob_test: ArrayLike) -> StandIns:
    """For every training string, all test strings of nearest probability under the language.

    Distances that differ by no more than rounding are ties, and all ties stand in: also those at
    the same distance on either side.

    Parameters
    ----------
    log_prob_train : float[train], nats
    log_prob_test : float[test], nats
        Distinct test strings that are not in the training data (`candidates`).

    Raises
    ------
    UserError
        If there is no test string to choose from.
    ValueError
        If a log probability is not finite: the string is outside the language.

    Source: section 3.3; where several strings are nearest, the median of their losses.
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
    # Nothing is nearer than the gap, so all that is within reach is at the gap, on either side.
    reach = gap + TIE * np.maximum(1.0, np.abs(train))
    first = np.searchsorted(ordered, train - reach, side="left")
    stop = np.searchsorted(ordered, train + reach, side="right")
    return StandIns(order, first, stop, gap)


def median_of_others(log_prob: np.ndarray, loss: np.ndarray) -> np.ndarray:
    """Median float[epochs, test] of the stand-ins' losses, for unseen test strings themselves.

    Each is measured against the *other* unseen strings, as a training string is against them all.
    A string that was never trained on cannot be memorised: whatever is found so is a false alarm.

    Parameters
    ----------
    log_prob : float[test], nats
        Of the candidates, at least two.
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
    """bool[strings] of a `strings` table: those that may stand in, test strings never trained on.

    A string that is held out is no candidate: it is measured, but was not drawn as a test string.
    """
    return ((strings["split"] == "test") & (strings["count"] == 0)).to_numpy()
