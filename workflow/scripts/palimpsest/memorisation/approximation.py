"""Same-frequency approximation of a string's counterfactual loss.

The counterfactual loss of a string is its loss after training without the string. Retraining
without each string is too expensive for whole datasets. Strings with similar probability under the
language tend to have similar losses. So strings that were never trained on stand in for a training
string: their loss approximates the counterfactual loss of the training string.

Source: Learning Without Memorizing Considered Infeasible, section 3.3. The paper matches strings by
their probability, and compares losses per token. Here, strings are matched by their Bayes-optimal
loss per token. The remaining difference between these losses is known exactly, and is subtracted.
So a model that knows the language and nothing else is never called memorising.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import WrongValue, checked_numbers, shown
from palimpsest.arguments import Numbers, takes
from palimpsest.errors import UserError
from palimpsest.lazy_import import lazy_import
from palimpsest.short_repr import ShortRepr

pd = lazy_import("pandas")

# Relative difference at which two losses count as equal. They are sums of many rounded terms, so
# equal values can differ by about 1e-14 of their size.
TIE = 1e-9
GAP = 0.5  # nats in total: beyond this distance, a string has no stand-in


@dataclass(frozen=True, repr=False)
class StandIns(ShortRepr):
    """The unseen strings that stand in for each training string.

    `order` int[unseen] sorts the unseen strings by Bayes-optimal loss. The stand-ins of training
    string i are `order[first[i]:stop[i]]`; `first` and `stop` are int[train]. `gap` float[train] is
    the distance between the Bayes-optimal losses of a training string and its stand-ins, in nats,
    over all tokens of the training string. A string whose gap is above `largest_gap` has no
    stand-ins. `optimal` float[train] and `optimal_unseen` float[unseen] are Bayes-optimal losses,
    nats per token.
    """

    order: np.ndarray
    first: np.ndarray
    stop: np.ndarray
    gap: np.ndarray
    optimal: np.ndarray
    optimal_unseen: np.ndarray
    largest_gap: float

    @property
    def exist(self) -> np.ndarray:
        """bool[train]: whether a training string has stand-ins."""
        return self.gap <= self.largest_gap

    def to_frame(self, string_id: ArrayLike | None = None) -> pd.DataFrame:
        """A row per training string: its optimal loss, and its stand-ins.

        Returns `string_id` (by default the string's number), `optimal_loss` (nats per token),
        `stand_in_gap` (nats) and `n_stand_ins` (0 beyond the largest gap).
        """
        return pd.DataFrame(
            {
                "string_id": np.arange(len(self.gap)) if string_id is None else string_id,
                "optimal_loss": self.optimal,
                "stand_in_gap": self.gap,
                "n_stand_ins": np.where(self.exist, self.stop - self.first, 0),
            }
        )

    def members(self, train: int) -> np.ndarray:
        return self.order[self.first[train] : self.stop[train]]

    def loss(self, loss: np.ndarray) -> np.ndarray:
        """Loss float[epochs, train] of the stand-ins, from that of all unseen strings.

        `loss` is float[epochs, unseen], nats per token. The result is the median over a string's
        stand-ins of the loss beyond the Bayes-optimal loss, plus the training string's own
        Bayes-optimal loss. It is NaN for a string without stand-ins.
        """
        beyond = (loss - self.optimal_unseen)[:, self.order]
        windows, window_of = np.unique(
            np.stack([self.first, self.stop]), axis=1, return_inverse=True
        )
        first, length = windows[0], windows[1] - windows[0]
        medians = np.empty((len(loss), len(first)))
        # Windows of equal length form a rectangular array. There are few lengths and many windows.
        for size in np.unique(length):
            same = np.flatnonzero(length == size)
            members = first[same, None] + np.arange(size)
            medians[:, same] = np.median(beyond[:, members], axis=2)
        # A loss is never negative, but a stand-in's loss can be far below its Bayes-optimal loss.
        found = np.maximum(medians[:, window_of.ravel()] + self.optimal, 0.0)
        return np.where(self.exist, found, np.nan)

    def mean_of(self, values: np.ndarray) -> np.ndarray:
        """Mean float[train] over the stand-ins of each training string of float[unseen] values.

        Unseen strings whose value is NaN are left out. The result is NaN for a string without
        stand-ins, and if the values of all its stand-ins are NaN.
        """
        ordered = values[self.order]
        is_known = np.isfinite(ordered)
        total, n = (
            np.concatenate([[0], np.cumsum(each)])
            for each in (np.where(is_known, ordered, 0.0), is_known)
        )
        n = n[self.stop] - n[self.first]
        mean = np.full(len(n), np.nan)
        np.divide(total[self.stop] - total[self.first], n, out=mean, where=(n > 0) & self.exist)
        return mean


def stand_ins(
    optimal: ArrayLike, optimal_unseen: ArrayLike, n_tokens: ArrayLike, largest_gap: float = GAP
) -> StandIns:
    """For every training string, all unseen strings with the nearest Bayes-optimal loss per token.

    Distances that differ only by rounding errors are ties, and all ties stand in. They may lie on
    both sides of the training string's loss.

    Parameters
    ----------
    optimal : float[train], nats per token
    optimal_unseen : float[unseen], nats per token
        Of distinct strings that are not in the training data (`candidates`).
    n_tokens : int[train], predicted tokens of each training string
    largest_gap : float, nats
        A string has no stand-ins if the nearest Bayes-optimal loss, times the number of tokens, is
        farther away.

    Raises `UserError` if there is no unseen string, and `ValueError` if a loss is not finite (the
    string is not in the language), if the shapes do not fit, if a number of tokens is below 1, or
    if the largest gap is negative.

    Source: section 3.3; if several strings are nearest, the median of their losses.
    """
    train, unseen = (
        checked_numbers("optimal", optimal),
        checked_numbers("optimal_unseen", optimal_unseen),
    )
    n_tokens = checked_numbers("n_tokens", n_tokens)
    gap = checked_numbers("largest_gap", largest_gap)
    if gap.ndim or not gap >= 0:
        raise WrongValue(f"largest_gap: is {shown(largest_gap)} and must be a number at least 0")
    if train.ndim != 1 or unseen.ndim != 1 or n_tokens.shape != train.shape:
        raise ValueError(
            "optimal, optimal_unseen and n_tokens must be [train], [unseen] and [train]: "
            f"{train.shape}, {unseen.shape} and {n_tokens.shape}"
        )
    if not (n_tokens >= 1).all():
        raise ValueError("n_tokens: must be at least 1")
    if len(unseen) == 0:
        raise UserError(
            "no unseen string can stand in for the training strings: every string that may stand "
            "in is also in the training data; set datasets/split to disjoint, or use a larger test "
            "set, a smaller training size or a language with more strings"
        )
    if not (np.isfinite(train).all() and np.isfinite(unseen).all()):
        raise ValueError("Bayes-optimal losses must be finite: a string is outside the language")
    order = np.argsort(unseen, kind="stable")
    ordered = unseen[order]
    right = np.searchsorted(ordered, train)
    distance = np.minimum(
        np.abs(train - ordered[np.maximum(right - 1, 0)]),
        np.abs(train - ordered[np.minimum(right, len(unseen) - 1)]),
    )
    # No unseen string is nearer than the distance, so all strings within the reach are at it.
    reach = distance + TIE * np.maximum(1.0, np.abs(train))
    first = np.searchsorted(ordered, train - reach, side="left")
    stop = np.searchsorted(ordered, train + reach, side="right")
    gap = distance * np.asarray(n_tokens)
    return StandIns(order, first, stop, gap, train, unseen, largest_gap)


@takes(
    loss=Numbers("epochs", "unseen strings"),
    optimal=Numbers("unseen strings"),
    n_tokens=Numbers("unseen strings"),
)
def loss_of_others(
    loss: np.ndarray, optimal: np.ndarray, n_tokens: np.ndarray, largest_gap: float = GAP
) -> np.ndarray:
    """Loss float[epochs, unseen] of the stand-ins of the unseen strings themselves.

    The stand-ins of an unseen string are chosen among the *other* unseen strings. A string that was
    never trained on cannot be memorised, so a measure that calls it memorised gives a false alarm.

    Parameters
    ----------
    loss : float[epochs, unseen], nats per token, of at least two candidates
    optimal : float[unseen], Bayes-optimal loss, nats per token
    n_tokens : int[unseen]
    largest_gap : see `stand_ins`

    Raises `UserError` if there is no other string.
    """
    found = np.empty_like(loss, dtype=float)
    for i in range(len(optimal)):
        one = slice(i, i + 1)
        others = stand_ins(optimal[one], np.delete(optimal, i), n_tokens[one], largest_gap)
        found[:, i] = others.loss(np.delete(loss, i, axis=1))[:, 0]
    return found
