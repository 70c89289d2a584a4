"""Where the variance of unlearning comes from: the training seed or the unlearning seed.

An original model is unlearned several times, with other random numbers. What differs between the
unlearnings of one original model is due to the unlearning seed; what differs between original
models, beyond that, is due to the training seed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from palimpsest.allowed import CONFIDENCES, checked_number, checked_numbers
from palimpsest.statistics import CONFIDENCE, is_constant
from palimpsest.unlearning.evaluate.gaps import per_model_shares
from palimpsest.unlearning.evaluate.samples import Problem, UnlearnedModels
from palimpsest.unlearning.kinds import VARIANCE
from palimpsest.unlearning.run.setups import ENDS, REUSE_N_N

TRAINING_SEED, UNLEARNING_SEED = SOURCES = ("training seed", "unlearning seed")


class Split(NamedTuple):
    """The variance of one model's value, by its two sources.

    training : float, variance between trainings
    unlearning : float, variance between unlearnings of one trained model
    share : float in [0, 1], unlearning / (training + unlearning)
    lower, upper : float in [0, 1], ends of the interval of this share
    """

    training: float
    unlearning: float
    share: float
    lower: float
    upper: float


NO_SPLIT = Split(*[np.nan] * 5)


def split_variance(values: ArrayLike, confidence: float = CONFIDENCE) -> Split:
    """Split the variance of values into that of the training seed and that of the unlearning seed.

    The model is value = mean + training + unlearning, where both effects are random: a one-way
    random-effects model with equally many unlearnings of every training. Its estimates by
    restricted maximum likelihood (REML) have a closed form, which is used here: those of the
    analysis of variance if the variance of the training is not negative, and otherwise 0 and the
    variance of all values.

    The interval of the share follows from the distribution of F, the ratio of the mean squares
    between and within trainings. It is exact for normal effects, also if a variance is 0. Heavy
    tails of the training effects make it too narrow.

    Parameters
    ----------
    values : float[T trainings, U unlearnings]
        Rows are independent; the values of a row share their training.
    confidence : float in (0, 1)

    Returns
    -------
    Split
        All NaN if there is only one training, or one unlearning of each, because the sources cannot
        be told apart then. The share and its interval are NaN if all values are equal.

    Raises
    ------
    ValueError
        If the values are not [trainings, unlearnings], or not finite, or if the confidence is not
        allowed.

    Source: Searle, Casella and McCulloch, Variance Components (1992), sections 3.5 (interval), 3.7
    and 4.3 (estimates).
    """
    values = _checked(values)
    checked_number("confidence", confidence, CONFIDENCES)
    n_trainings, n_unlearnings = values.shape
    if n_trainings < 2 or n_unlearnings < 2:
        return NO_SPLIT
    between, within = _mean_squares(values)
    if between == within == 0:
        return Split(0.0, 0.0, np.nan, np.nan, np.nan)
    training = (between - within) / n_unlearnings
    unlearning = within
    if training < 0:
        training, unlearning = 0.0, float(values.var(ddof=1))
    lower, upper = _interval(between, within, n_trainings, n_unlearnings, confidence)
    return Split(training, unlearning, unlearning / (training + unlearning), lower, upper)


def _checked(values: ArrayLike) -> np.ndarray:
    """The values as float64; ValueError if they are not [trainings, unlearnings] and finite."""
    values = checked_numbers("values", values)
    if values.ndim != 2 or not values.size:
        raise ValueError(f"values must be [trainings, unlearnings], not {values.shape}")
    if not np.isfinite(values).all():
        raise ValueError("values must be finite")
    return values


def _mean_squares(values: np.ndarray) -> tuple[float, float]:
    """Mean squares between and within the rows; 0 if values differ by rounding only."""
    n_rows, n_columns = values.shape
    means = values.mean(axis=1)
    between = n_columns * means.var(ddof=1)
    within = np.square(values - means[:, None]).sum() / (n_rows * (n_columns - 1))
    magnitude = np.abs(values).max()
    return (
        0.0 if is_constant(means, magnitude) else float(between),
        0.0 if is_constant(values.T, magnitude).all() else float(within),
    )


def _interval(
    between: float, within: float, n_trainings: int, n_unlearnings: int, confidence: float
) -> tuple[float, float]:
    """Ends of the interval of the share of the variance that is due to the unlearning seed."""
    from scipy.special import fdtri

    if within == 0:
        return 0.0, 0.0
    freedom = n_trainings - 1, n_trainings * (n_unlearnings - 1)
    outside = (1 - confidence) / 2
    ends = []
    for rank in (1 - outside, outside):
        # The ratio of the two expected mean squares that would put F at this quantile.
        ratio = between / within / fdtri(*freedom, rank)
        ends.append(1.0 if ratio <= 1 else n_unlearnings / (ratio + n_unlearnings - 1))
    upper, lower = ends
    return lower, upper


def variance_table(problem: Problem, methods: Iterable[UnlearnedModels]) -> pd.DataFrame:
    """The table `unlearning_variance` of one problem.

    The value of a model is its share of the gap closed, see `per_model_shares`. The models of a
    method are all unlearnings of every original model in the set-up reuse-n-n; without this set-up,
    every original model is unlearned once, and nothing is known about the sources. The ends `none`
    and `retrain` involve no unlearning: all their variance is due to the training seed. A model of
    `retrain` is paired with an original model of another training, so its value varies with both.

    Raises `UserError` if a model is missing.
    """
    origins, unlearning_replicates = _asked(problem)
    rows = []
    for method in methods:
        is_end = method.name in ENDS
        shares = shares_of_models(
            problem, method, origins, unlearning_replicates[:1] if is_end else unlearning_replicates
        )
        found = _of_end(shares) if is_end else _of_method(shares)
        counts = dict(zip(("n_trainings", "n_unlearnings"), shares.shape, strict=True))
        keys = {**problem.keys, "method": method.name}
        rows.extend({**keys, **row, **counts} for row in found)
    return pd.DataFrame(rows, columns=VARIANCE.names)


def _asked(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of the original models, and those of the unlearnings of each."""
    for setup in problem.setups:
        if setup.name == REUSE_N_N:
            return np.arange(setup.n), np.arange(setup.repetitions)
    return np.unique(problem.stock.origins), np.zeros(1, dtype=int)


def shares_of_models(
    problem: Problem,
    method: UnlearnedModels,
    origins: np.ndarray,
    unlearning_replicates: np.ndarray,
) -> np.ndarray:
    """Shares of the gap closed, float64[origins, replicates]; all NaN without a clear gap.

    The gap leads from these original models to all retrained models of the set-ups, whichever the
    replicate, so the shares of different replicates are comparable.
    """
    before = problem.originals.of(origins).loss[:, problem.forget]
    retrained = problem.reference.loss[:, problem.forget]
    shares = []
    for replicate in unlearning_replicates:
        members = problem.stock._replace(
            origins=origins,
            unlearning_replicates=np.full_like(origins, replicate),
            retrained=np.arange(len(origins)),
        )
        after = method.of(members).loss[:, problem.forget]
        shares.append(per_model_shares(before, after, retrained))
    return np.stack(shares, axis=1)


def _of_end(shares: np.ndarray) -> list[dict]:
    """The row of one of the two ends, whose shares are float64[trainings, 1]."""
    nothing = dict.fromkeys(("share", "lower", "upper"), np.nan)
    return [{"source": TRAINING_SEED, "variance": float(shares.var(ddof=1)), **nothing}]


def _of_method(shares: np.ndarray) -> list[dict]:
    """One row for each source, of shares float64[trainings, unlearnings]."""
    found = NO_SPLIT if np.isnan(shares).any() else split_variance(shares)
    return [
        {
            "source": TRAINING_SEED,
            "variance": found.training,
            "share": 1 - found.share,
            "lower": 1 - found.upper,
            "upper": 1 - found.lower,
        },
        {
            "source": UNLEARNING_SEED,
            "variance": found.unlearning,
            "share": found.share,
            "lower": found.lower,
            "upper": found.upper,
        },
    ]
