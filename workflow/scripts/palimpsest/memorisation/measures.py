"""Recollection, counterfactual, contextual and Bayes memorisation: four thresholds on one loss.

A string is memorised when its loss falls below a threshold. The measures differ only in the
threshold, so `Memorisation.below` computes start and score for all measures.

Source: Learning Without Memorizing Considered Infeasible, section 3.1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import checked_numbers
from palimpsest.lazy_import import lazy_import, named
from palimpsest.short_repr import ShortRepr
from palimpsest.statistics import FEWEST_TERMS, rounding_error

pd = lazy_import("pandas")

Start = Literal["after_last_miss", "first_crossing"]


def _after_last_miss(below: np.ndarray) -> np.ndarray:
    """Index int[strings] of the epoch after the last epoch that is not below the threshold.

    The index is the number of epochs if memorisation never starts.
    """
    misses_from_the_end = ~below[::-1]
    start = len(below) - misses_from_the_end.argmax(axis=0)
    return np.where(misses_from_the_end.any(axis=0), start, 0)


def _first_crossing(below: np.ndarray) -> np.ndarray:
    """Index int[strings] of the first epoch below the threshold; the number of epochs if none."""
    return np.where(below.any(axis=0), below.argmax(axis=0), len(below))


START_RULES = {"after_last_miss": _after_last_miss, "first_crossing": _first_crossing}


@dataclass(frozen=True, repr=False)
class Memorisation(ShortRepr):
    """The start of memorisation of strings, and their score at every epoch.

    `start` float[strings] is the index of an epoch, and NaN if memorisation never starts. `score`
    float[epochs, strings] is in [0, 1], and 0 before the start. A string is memorised if its loss
    is below `threshold` float[epochs, strings]. `margin` float[epochs, strings] is the score
    without the rule for the start: it is above 0 at each epoch with a loss below the threshold,
    even if the loss rises above the threshold later. If a string's threshold is unknown, all its
    values are NaN. `strings` [strings] and `epochs` [epochs] are the names in the columns and the
    index, if the loss was a data frame.
    """

    start: np.ndarray
    score: np.ndarray
    threshold: np.ndarray
    margin: np.ndarray
    strings: np.ndarray | None = None
    epochs: np.ndarray | None = None

    @property
    def memorised(self) -> np.ndarray:
        """bool[epochs, strings]: whether the score is above 0 (section 4, fraction of strings)."""
        return self.score > 0

    @property
    def is_below(self) -> np.ndarray:
        """bool[epochs, strings]: whether the loss is below the threshold at this epoch."""
        return self.margin > 0

    def below_at(self, epoch: int) -> np.ndarray:
        """float[strings]: 1 if the loss is below the threshold at an epoch, 0 if not, or NaN."""
        return np.where(self.is_known, self.is_below[epoch], np.nan)

    @property
    def is_known(self) -> np.ndarray:
        """bool[strings]: whether the string has a threshold."""
        return np.isfinite(self.threshold).all(axis=0)

    def among(self, known: np.ndarray) -> Memorisation:
        """The result for more strings: those that are not `known` have no threshold.

        This result has the strings where `known` is true, in order.
        """
        values = (self.start, self.score, self.threshold, self.margin)
        spread = [np.full((*value.shape[:-1], len(known)), np.nan) for value in values]
        for array, value in zip(spread, values, strict=True):
            array[..., known] = value
        return Memorisation(*spread)

    def to_frame(
        self, string_id: ArrayLike | None = None, epoch: ArrayLike | None = None
    ) -> pd.DataFrame:
        """A row per string and epoch, with the columns of the table `scores`, start and margin.

        Parameters
        ----------
        string_id : [strings], names; by default those of the loss, or the strings' numbers
        epoch : [epochs], numbers; by default those of the loss, or from 0, so that `start` is the
            epoch's index

        Returns `string_id`, `epoch`, `threshold`, `score`, `start` and `margin`.

        Raises `ValueError` if there are other numbers of names or of epochs.
        """
        n_epochs, n_strings = self.score.shape
        string_id = self.strings if string_id is None else string_id
        epoch = self.epochs if epoch is None else epoch
        names = np.arange(n_strings) if string_id is None else np.asarray(string_id)
        epochs = np.arange(n_epochs) if epoch is None else np.asarray(epoch)
        if names.shape != (n_strings,) or epochs.shape != (n_epochs,):
            raise ValueError(
                f"string_id and epoch must be [{n_strings}] and [{n_epochs}]: "
                f"{list(names.shape)} and {list(epochs.shape)}"
            )
        starts = np.isfinite(self.start)
        at = pd.Series(epochs[np.where(starts, self.start, 0).astype(int)]).where(starts)
        start = (at.astype(float) if at.dtype.kind in "iuf" else at).to_numpy()
        return pd.DataFrame(
            {
                "string_id": np.repeat(names, n_epochs),
                "epoch": np.tile(epochs, n_strings),
                "threshold": self.threshold.T.ravel(),
                "score": self.score.T.ravel(),
                "start": np.repeat(start, n_epochs),
                "margin": self.margin.T.ravel(),
            }
        )

    @classmethod
    def below(
        cls,
        threshold: ArrayLike,
        loss: ArrayLike,
        start: Start = "after_last_miss",
        binary: bool = False,
    ) -> Memorisation:
        """Memorised means: from the start on, at every epoch with a loss below the threshold.

        Parameters
        ----------
        threshold : broadcastable to float[epochs, strings], nats per token
        loss : float[epochs, strings], nats per token
        start : "after_last_miss" or "first_crossing"
            after_last_miss: the epoch after the last epoch at which the loss is not below the
            threshold. So a string whose loss falls below once and rises again has not started.
            first_crossing: the first epoch at which the loss is below the threshold.
        binary : bool
            Use the score 1 instead of (threshold - loss) / threshold.

        A loss that is smaller than its threshold by a rounding error is not below.

        Raises
        ------
        ValueError
            If a loss or threshold is negative or not finite, the shapes do not fit, or the start
            rule is unknown.
        """
        if start not in START_RULES:
            raise ValueError(f"unknown start {start!r}; known: {', '.join(START_RULES)}")
        names = names_in(loss) or (None, None)
        loss = check_loss("loss", loss)
        if loss.ndim != 2 or len(loss) == 0:
            raise ValueError(f"loss must be [epochs, strings], at least one epoch: {loss.shape}")
        threshold = np.broadcast_to(check_loss("threshold", threshold), loss.shape)
        below = threshold - loss > rounding_error(threshold, FEWEST_TERMS)
        first = START_RULES[start](below)
        margin = below.astype(float)
        if not binary:
            # A loss is never below a threshold of 0, so this never divides by 0.
            np.divide(threshold - loss, threshold, out=margin, where=below)
        score = np.where(np.arange(len(loss))[:, None] >= first, margin, 0.0)
        begun = np.where(first < len(loss), first, np.nan)
        return cls(begun, score, threshold, margin, *names[::-1])


def recollection(
    loss: ArrayLike, threshold: float, start: Start = "after_last_miss"
) -> Memorisation:
    """Recollection: the loss is below a constant, equal for all strings; the score is binary.

    Parameters
    ----------
    loss : float[epochs, strings], nats per token
        For recollection by accuracy: the share of wrong tokens, `1 - accuracy`, with the
        threshold `1 - 0.95`.
    threshold : float, in the unit of the loss

    Raises
    ------
    ValueError
        If a loss or the threshold is negative or not finite, or the start rule is unknown.

    Source: section 3.1(a).
    """
    if np.ndim(threshold) != 0:
        raise ValueError(f"recollection has one threshold, not an array: {np.shape(threshold)}")
    return Memorisation.below(threshold, loss, start, binary=True)


def counterfactual(
    loss: ArrayLike, loss_without: ArrayLike, start: Start = "after_last_miss"
) -> Memorisation:
    """Counterfactual memorisation: the loss is below the loss of training without the string.

    Parameters
    ----------
    loss : float[epochs, strings], nats per token
        Loss of each string when it is in the training data.
    loss_without : float[epochs, strings], nats per token
        Loss of the same strings at the same epochs, each when it is not in the training data.

    Raises
    ------
    ValueError
        If the shapes differ, two data frames differ in their rows or columns, a loss is negative or
        not finite, or the start rule is unknown.

    Source: section 3.1(b), equation 1.
    """
    check_same_shape(loss, loss_without)
    return Memorisation.below(loss_without, loss, start)


def contextual(
    loss: ArrayLike, loss_without: ArrayLike, start: Start = "after_last_miss"
) -> Memorisation:
    """Contextual memorisation: recollection beyond the best that context alone allows.

    The threshold is the string's optimal contextual loss, the lowest loss that training without
    the string reached on it at any epoch.

    Parameters
    ----------
    loss : float[epochs, strings], nats per token
        Loss of each string when it is in the training data.
    loss_without : float[epochs, strings], nats per token
        Loss of the same strings, each when it is not in the training data.

    Raises
    ------
    ValueError
        If the shapes differ, two data frames differ in their rows or columns, a loss is negative or
        not finite, or the start rule is unknown.

    Source: section 3.1(c), equation 2.
    """
    check_same_shape(loss, loss_without)
    optimal_contextual_loss = check_loss("loss_without", loss_without).min(axis=0)
    return Memorisation.below(optimal_contextual_loss, loss, start)


def bayes(
    loss: ArrayLike, optimal_loss: ArrayLike, start: Start = "after_last_miss"
) -> Memorisation:
    """Bayes memorisation: the loss is below the string's optimal loss under the language.

    On average, no model that knows only the language predicts strings better. So this is contextual
    memorisation with a perfect learner of the language in place of the retrained model.

    Parameters
    ----------
    loss : float[epochs, strings], nats per token
    optimal_loss : float[strings], nats per token
        Bayes-optimal loss of each string under the language.

    Raises
    ------
    ValueError
        If the shapes do not fit, a loss is negative or not finite, or the start rule is unknown.
    """
    n_strings = checked_numbers("loss", loss).shape[1:]
    if (own := checked_numbers("optimal_loss", optimal_loss).shape) != n_strings:
        raise ValueError(f"optimal_loss must have one value per string, {n_strings}: {own}")
    return Memorisation.below(optimal_loss, loss, start)


def lemma_assumption_broken(loss: ArrayLike, loss_without: ArrayLike) -> tuple[np.ndarray, float]:
    """Share of epochs with a loss above the loss without the string: per string, and over all.

    Lemma 1 says that contextual memorisation never starts before counterfactual memorisation, and
    that its score is never higher. The proof assumes that this share is 0: training on a string
    never raises its loss. With the definitions here, the lemma holds even without this assumption.
    The loss must be below the threshold at every epoch from the start on, and the contextual
    threshold, the lowest loss without the string, is never above the counterfactual one.

    Parameters
    ----------
    loss, loss_without : float[epochs, strings], nats per token
        `loss_without` is NaN at all epochs for a string whose loss without it is unknown.

    Returns
    -------
    float[strings], NaN for unknown strings; float over the others, NaN if there are none

    Raises
    ------
    ValueError
        If the shapes differ, or a loss is negative or not finite.

    Source: appendix D.
    """
    check_same_shape(loss, loss_without)
    loss, loss_without = (np.asarray(each, dtype=float) for each in (loss, loss_without))
    known = ~np.isnan(loss_without).all(axis=0)
    broken = check_loss("loss", loss[:, known]) > check_loss("loss_without", loss_without[:, known])
    shares = np.full(len(known), np.nan)
    shares[known] = broken.mean(axis=0)
    return shares, float(broken.mean()) if broken.size else np.nan


def check_loss(name: str, loss: ArrayLike) -> np.ndarray:
    """The loss as float64; ValueError if a value is negative or not finite."""
    loss = checked_numbers(name, loss)
    wrong = ~(np.isfinite(loss) & (loss >= 0))
    if wrong.any():
        first = f"{name}{np.argwhere(wrong)[0].tolist()}" if loss.ndim else "it"
        more = f" ({wrong.sum()} of {loss.size} values are wrong)" if loss.ndim else ""
        raise ValueError(
            f"{name} must be finite and not negative; {first} is {loss[wrong][0]}{more}"
        )
    return loss


def names_in(loss: ArrayLike) -> tuple[np.ndarray, np.ndarray] | None:
    """The names of the rows and the columns of a data frame; None for an array."""
    if not (hasattr(loss, "index") and hasattr(loss, "columns")):
        return None
    return loss.index.to_numpy(), loss.columns.to_numpy()


def check_same_shape(loss: ArrayLike, loss_without: ArrayLike) -> None:
    """Raise ValueError unless both losses are [epochs, strings] of the same size."""
    one, other = (
        checked_numbers(name, values).shape
        for name, values in (("loss", loss), ("loss_without", loss_without))
    )
    if one != other or len(one) != 2:
        raise ValueError(
            f"loss and loss_without must have the same shape [epochs, strings]: {one} and {other}"
        )
    names = names_in(loss), names_in(loss_without)
    if None in names:
        return
    for axis, own, others in zip(("rows", "columns"), *names, strict=True):
        if not np.array_equal(own, others):
            place = int((own != others).argmax())
            raise ValueError(
                f"loss and loss_without must have the same {axis} in the same order: "
                f"{axis[:-1]} {place} is {own[place]!r} and {others[place]!r}"
            )


@dataclass(frozen=True)
class Description:
    """A measure for readers of the report; `threshold` and `score` are HTML."""

    name: str
    words: str
    threshold: str
    score: str
    needs: str


@dataclass(frozen=True)
class Measure:
    """A measure that compares the loss of a string with the loss of training without it.

    `module` is the `__name__` of its file. The file, the measure and the function have one name;
    the function takes what `counterfactual` takes.
    """

    module: str
    description: Description

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    @property
    def function(self) -> Callable[..., Memorisation]:
        return named(f"{self.module}:{self.name}")


DESCRIPTIONS = (
    Description(
        name="Recollection",
        words=(
            "The model predicts the string almost perfectly. It does not matter why: a string "
            "also counts if anyone who knows the language could continue it."
        ),
        threshold="loss(<i>e</i>) &lt; <i>τ</i>, with <i>τ</i> = 0.2 unless the "
        "configuration says otherwise",
        score="1 from the start on, else 0",
        needs="the trained model",
    ),
    Description(
        name="Counterfactual",
        words=(
            "The model predicts the string better than a model that was trained for as many "
            "epochs without it."
        ),
        threshold="loss(<i>e</i>) &lt; loss<sub>without</sub>(<i>e</i>)",
        score="(loss<sub>without</sub>(<i>e</i>) − loss(<i>e</i>)) / "
        "loss<sub>without</sub>(<i>e</i>)",
        needs="a second training without the string, or unseen strings of the same frequency",
    ),
    Description(
        name="Contextual",
        words=(
            "The model predicts the string better than any amount of training without the string "
            "allows: the string itself must have helped."
        ),
        threshold="loss(<i>e</i>) &lt; <i>c</i>, with <i>c</i> = "
        "min<sub><i>e′</i></sub> loss<sub>without</sub>(<i>e′</i>), the "
        "optimal contextual loss",
        score="(<i>c</i> − loss(<i>e</i>)) / <i>c</i>",
        needs="as counterfactual",
    ),
    Description(
        name="Bayes",
        words=(
            "The model predicts the string better than somebody who knows the language exactly. "
            "On average, no model does so on strings that it has not seen."
        ),
        threshold="loss(<i>e</i>) &lt; <i>b</i>, with <i>b</i> = −log <i>P</i>(string) "
        "/ tokens, the Bayes-optimal loss",
        score="(<i>b</i> − loss(<i>e</i>)) / <i>b</i>",
        needs="the grammar of the language; no second training",
    ),
)
