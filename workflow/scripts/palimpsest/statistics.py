"""Statistics that claims, tables and the report share: intervals, p-values, rank associations.

Pure functions on arrays. Nothing here knows of models, strings or sections.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import WrongValue, shown

CONFIDENCE = 0.95
DECIMALS = 12  # verdicts compare rounded values, so that rounding errors do not decide a verdict
FEWEST_SIGNS = 5  # values that are all on one side of a bound are a sign test of their median
SIGN_LEVEL = 1 / 2**FEWEST_SIGNS  # on either side
MOST_VALUES = 1000  # more are never proposed
MOST_ITEMS = 7  # 5,040 orders
# Rounding errors are at most about this many machine epsilons for each term of a sum.
EPSILONS = 16
# Values are often sums themselves, of a number of terms that nobody knows.
FEWEST_TERMS = 256


class Interval(NamedTuple):
    """A mean and the two ends of its interval; the ends are NaN where there is no interval."""

    mean: float
    lower: float
    upper: float

    def columns(self, name: str = "value") -> dict[str, float]:
        """The mean, as a column of this name, and the columns `lower` and `upper`."""
        return {name: self.mean, "lower": self.lower, "upper": self.upper}


NO_INTERVAL = Interval(np.nan, np.nan, np.nan)


def student(
    values: ArrayLike, decimals: int | None = None, confidence: float = CONFIDENCE
) -> Interval:
    """Mean of independent values and its Student interval.

    Parameters
    ----------
    values : float[n]
        n = 1 has a mean and no interval; n = 0 has neither.
    decimals : int, optional
        Round the mean, then the ends. Values that are all 0.1 then have the interval [0.1, 0.1].
    confidence : float in (0, 1)
    """
    # Imported here, because many jobs import this module, and scipy loads slowly.
    from scipy.special import stdtrit

    values = np.asarray(values, dtype=float)
    n = len(values)
    if n == 0:
        return Interval(np.nan, np.nan, np.nan)
    mean = values.mean()
    if decimals is not None:
        mean = np.round(mean, decimals)
    if n == 1:
        return Interval(mean, np.nan, np.nan)
    spread = 0.0 if is_constant(values) else float(standard_deviation(values))
    reach = stdtrit(n - 1, (1 + confidence) / 2) * spread / np.sqrt(n)
    ends = mean - reach, mean + reach
    return Interval(mean, *(ends if decimals is None else np.round(ends, decimals)))


def student_p_value(values: ArrayLike, bound: float) -> float:
    """Two-sided p-value of Student's t test that independent values have the mean `bound`.

    It is below 0.05 exactly if `bound` is outside the interval of `student`. NaN if there are fewer
    than two values, if the values have no spread, or if `bound` is NaN. `values` is float[n].
    """
    from scipy.special import stdtr

    values = np.asarray(values, dtype=float)
    if _spread(values) == 0:
        return np.nan
    error = _spread(values) / np.sqrt(len(values))
    return float(2 * stdtr(len(values) - 1, -abs(values.mean() - bound) / error))


def effective_groups(groups: np.ndarray) -> float:
    """The number of groups of one size whose mean varies as that of these groups; 0 for none.

    A mean over records weighs a group by its size, so a large group among small ones counts for
    more, and the number is smaller than that of the groups. Source: Kish, Survey Sampling (1965).
    """
    sizes = np.unique(groups.astype(str), return_counts=True)[1]
    return sizes.sum() ** 2 / (sizes**2).sum() if len(sizes) else 0.0


def beyond_false_alarms(trained, unseen):
    """The share of what a model was trained on that is called memorised, beyond false alarms.

    The false alarms are the same share, by the same code, of what it was never trained on. The
    answer is the difference, and nothing else is called so: a difference assumes nothing of how
    training and false alarms combine, and is known even if all of the unseen are called memorised.
    """
    try:
        return trained - unseen
    except TypeError:
        raise WrongValue(
            f"trained: is {shown(trained)}, and unseen: is {shown(unseen)}; both must be numbers "
            "or arrays of numbers"
        ) from None


def wilson(share: float, n: float) -> tuple[float, float]:
    """Wilson's 95 % interval of the probability behind a share of n independent trials."""
    from scipy.special import ndtri

    z = ndtri((1 + CONFIDENCE) / 2)
    centre = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    reach = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    return max(0.0, centre - reach), min(1.0, centre + reach)


def clopper_pearson(share: float, n: float, confidence: float = CONFIDENCE) -> tuple[float, float]:
    """The exact interval of the probability behind a share of n independent trials.

    The probability is outside in at most 5 % of the cases, however few trials there are. For a
    number of trials that is not whole, such as `effective_groups`, the formula is the same.

    Source: Clopper and Pearson, Biometrika 26 (1934).
    """
    beyond, hits = (1 - confidence) / 2, share * n
    return float(lower_bound(hits, n, beyond)), float(upper_bound(hits, n, beyond))


def lower_bound(hits: ArrayLike, n: ArrayLike, alpha: float) -> np.ndarray:
    """Clopper and Pearson's lower bound float64[...] of a probability with `hits` in n trials.

    The probability is below the bound in at most a share `alpha` of the cases.
    """
    from scipy.special import betaincinv

    hits, n = np.broadcast_arrays(np.asarray(hits, dtype=float), np.asarray(n, dtype=float))
    known = np.where(hits > 0, hits, 1)  # without a hit, the bound is 0
    return np.where(hits > 0, betaincinv(known, n - hits + 1, alpha), 0.0)


def upper_bound(hits: ArrayLike, n: ArrayLike, alpha: float) -> np.ndarray:
    """Clopper and Pearson's upper bound, likewise."""
    from scipy.special import betaincinv

    hits, n = np.broadcast_arrays(np.asarray(hits, dtype=float), np.asarray(n, dtype=float))
    misses = np.where(hits < n, n - hits, 1)  # without a miss, the bound is 1
    return np.where(hits < n, betaincinv(hits + 1, misses, 1 - alpha), 1.0)


def median_interval(values: ArrayLike) -> tuple[float, float]:
    """Two of the values, between which the median of their distribution is, whatever this is.

    The median is below the lower end with a probability of at most `SIGN_LEVEL`, and above the
    upper end with the same probability. Fewer values than `FEWEST_SIGNS` have infinite ends.

    Parameters
    ----------
    values : float[n], independent

    Source: the sign test; Conover, Practical nonparametric statistics.
    """
    rising = np.sort(np.asarray(values, dtype=float))
    n = len(rising)
    if n < FEWEST_SIGNS:
        return -np.inf, np.inf
    n_beyond = n_beyond_median(n)
    return float(rising[n_beyond]), float(rising[n - 1 - n_beyond])


def n_beyond_median(n: int) -> int:
    """How many of n values may lie on the wrong side of a bound, in a sign test of their median.

    If the median is on the bound, so few or fewer lie there with a probability of at most
    `SIGN_LEVEL`. `n` is at least `FEWEST_SIGNS`.
    """
    from scipy.special import bdtr

    return int(np.flatnonzero(bdtr(np.arange(n), n, 0.5) <= SIGN_LEVEL)[-1])


def sample_size(values: ArrayLike, bound: float) -> float:
    """The smallest number of values whose Student interval would not contain `bound`.

    The number holds if further values leave the mean and the standard deviation as they are, so it
    is a rough guide. NaN if there are fewer than two values, if the values have no spread, if
    `bound` is NaN, or if the number is above `MOST_VALUES`. `values` is float[n].
    """
    values = np.asarray(values, dtype=float)
    if _spread(values) == 0:
        return np.nan
    enough = np.flatnonzero(_spread(values) * _reaches() < abs(values.mean() - bound))
    return float(enough[0] + 2) if len(enough) else np.nan


def power(values: ArrayLike, bound: float) -> float:
    """Probability that as many values again tell their mean, and their median, from `bound`.

    Both Student's test and, from `FEWEST_SIGNS` values on, the sign test have to tell it. This is
    the power of the weaker test; that of both together is up to 0.05 smaller. The values are
    supposed to be normal, with the mean and the standard deviation of these values. NaN if there
    are fewer than two values, if they have no spread, or if `bound` is NaN. `values` is float[n].
    """
    from scipy.special import bdtr, nctdtr, ndtr, stdtrit

    values = np.asarray(values, dtype=float)
    n, spread = len(values), _spread(values)
    if spread == 0 or np.isnan(bound):
        return np.nan
    distance = abs(values.mean() - bound) / spread
    shift = distance * np.sqrt(n)
    missed = nctdtr(n - 1, shift, stdtrit(n - 1, (1 + CONFIDENCE) / 2))
    by_student = 1 - np.nan_to_num(missed, nan=0.0)  # NaN where it is below 1e-140
    if n < FEWEST_SIGNS:
        return float(by_student)
    return float(min(by_student, bdtr(n_beyond_median(n), n, ndtr(-distance))))


@cache
def _reaches() -> np.ndarray:
    """Half the width of Student's interval of n = 2, 3, ... values, in standard deviations."""
    from scipy.special import stdtrit

    n = np.arange(2, MOST_VALUES + 1)
    return stdtrit(n - 1, (1 + CONFIDENCE) / 2) / np.sqrt(n)


def _spread(values: np.ndarray) -> float:
    """Standard deviation of a sample; 0 for one value or none, and if only rounding differs.

    A spread that verdicts do not see is rounding, too.
    """
    if len(values) < 2 or np.ptp(values) < 10.0**-DECIMALS or is_constant(values):
        return 0.0
    return float(standard_deviation(values))


def standard_deviation(values: ArrayLike) -> np.ndarray:
    """Standard deviation float[...] of a sample float[n, ...], along the first axis.

    The square of no difference becomes 0 or infinite, however small or large the values are.
    """
    values = np.asarray(values, dtype=float)
    unit = power_of_two(values, axis=0)
    return (values / unit).std(axis=0, ddof=1) * unit


def power_of_two(values: ArrayLike, axis: int | None = None) -> np.ndarray:
    """The power of two just above the largest absolute value; 1 if that is 0 or not finite.

    Division by it, and multiplication with it, change no bit of a value but its exponent.
    """
    largest = np.abs(np.asarray(values, dtype=float)).max(axis=axis)
    _, exponent = np.frexp(np.where(np.isfinite(largest), largest, 1.0))
    # Powers beyond the range of a float would be 0 or infinite.
    return np.ldexp(1.0, np.clip(exponent, -1021, 1023))


def is_constant(
    values: ArrayLike, magnitude: ArrayLike | None = None, n_terms: int | None = None
) -> np.ndarray:
    """Whether values are equal along their first axis, up to rounding.

    A spread that is computed from such values is not exactly 0, and what is divided by this spread
    is noise. So estimators and scores call this function. They never test whether a spread is 0.

    Parameters
    ----------
    values : float[n, ...]
    magnitude : float[...], optional
        The largest absolute value that the values were computed from. For differences, it is that
        of the numbers that were subtracted: their rounding errors stay, however small the
        differences are. Default: the largest absolute value of the values themselves.
    n_terms : int, optional
        The number of terms that were summed up to one value; see `rounding_error`.

    Returns
    -------
    bool[...]
        True for one value or none; False if a value is not finite.
    """
    values = np.asarray(values)
    if values.dtype not in (np.float32, np.float64):
        values = values.astype(float)
    if len(values) < 2:
        return np.ones(values.shape[1:], dtype=bool)
    if n_terms is None:
        n_terms = max(len(values), FEWEST_TERMS)
    with np.errstate(invalid="ignore", over="ignore"):
        low, high = (ends.astype(float) for ends in (values.min(axis=0), values.max(axis=0)))
        if magnitude is None:
            magnitude = np.maximum(np.abs(low), np.abs(high))
        largest = rounding_error(magnitude, n_terms, values.dtype)
        return np.isfinite(high - low) & (high - low <= largest)


def with_exact_ties(values: ArrayLike) -> np.ndarray:
    """Values float64[n, ...], in which those that differ by rounding only are exactly equal.

    Each column of the first axis is looked at alone. Values that have no such neighbour stay as
    they are. The rounding of a shorter type is its own. Ranks, thresholds and distribution
    functions need this: to them, a value that is larger by a rounding error is larger.
    """
    values = np.asarray(values)
    n_terms = FEWEST_TERMS
    if values.dtype.kind == "f":  # computed in this type
        n_terms = max(n_terms, round(_epsilons(values.dtype)))
    values = values.astype(float)
    order = np.argsort(values, axis=0, kind="stable")
    rising = np.take_along_axis(values, order, axis=0)
    with np.errstate(invalid="ignore", over="ignore"):
        steps = rising[1:] - rising[:-1]
    sizes = np.maximum(np.abs(rising[1:]), np.abs(rising[:-1]))
    is_tie = np.isfinite(steps) & (steps <= rounding_error(sizes, n_terms))
    if not (is_tie & (steps > 0)).any():
        return values
    # Where the ties of each value begin
    places = np.arange(len(rising)).reshape(-1, *[1] * (rising.ndim - 1))
    first = np.where(np.concatenate([np.zeros_like(is_tie[:1]), is_tie]), 0, places)
    rising = np.take_along_axis(rising, np.maximum.accumulate(first, axis=0), axis=0)
    found = np.empty_like(values)
    np.put_along_axis(found, order, rising, axis=0)
    return found


def rounding_error(magnitude: ArrayLike, n_terms: int, dtype: type = float) -> np.ndarray:
    """The largest rounding error float[...] of sums of `n_terms` numbers of this magnitude."""
    return EPSILONS * n_terms * float(np.finfo(dtype).eps) * np.asarray(magnitude, dtype=float)


def terms_of(stored: type) -> int:
    """The number of terms of a sum in float64 that rounds as much as storing numbers in this type.

    A stored number is wrong by at most half an epsilon, so a change between two of them is wrong by
    at most one, and two such changes differ by at most two.
    """
    return math.ceil(2 * _epsilons(stored) / EPSILONS)


def _epsilons(stored: type) -> float:
    return float(np.finfo(stored).eps / np.finfo(float).eps)


def holm(p_values: ArrayLike) -> np.ndarray:
    """P-values float[n] corrected for testing n hypotheses at once; NaN is no test and stays NaN.

    With the corrected p-values, the probability of any false rejection at 5 % is at most 5 %,
    however the tests depend on each other.

    Source: Holm, A simple sequentially rejective multiple test procedure, Scandinavian Journal of
    Statistics 6 (1979).
    """
    p_values = np.asarray(p_values, dtype=float)
    tested = np.flatnonzero(~np.isnan(p_values))
    order = tested[np.argsort(p_values[tested], kind="stable")]
    n_left = np.arange(len(order), 0, -1)
    corrected = np.full(len(p_values), np.nan)
    corrected[order] = np.minimum(np.maximum.accumulate(p_values[order] * n_left), 1)
    return corrected


def rank_association(x: ArrayLike, y: ArrayLike) -> float:
    """Somers' D of y given x, in [-1, 1]: share of concordant minus share of discordant pairs.

    Pairs with equal x are left out. Pairs with equal y count as neither concordant nor discordant.
    NaN if all x are equal.
    """
    x_order, y_order = pair_order(x), pair_order(y)
    comparable = np.count_nonzero(x_order)
    return (x_order * y_order).sum() / comparable if comparable else np.nan


def order_p_value(
    x: Sequence[ArrayLike], y: Sequence[ArrayLike], region: str = "two-sided"
) -> float:
    """Exact p-value that x has nothing to do with the order of y, in independent samples.

    The statistic is the mean over the samples of `rank_association(x, y)`. If x has nothing to do
    with y, every order of a sample's items is equally probable, so the test counts the orders. Ties
    stay ties. A sample may have several y for the same items, such as several models trained on the
    same strings: their associations are averaged, and their items are permuted together.

    Parameters
    ----------
    x : float[items] of each sample, with at most `MOST_ITEMS` items
    y : float[items] or float[repetitions, items] of each sample
    region : "above" or "below" for the association that speaks against chance, or "two-sided"

    Returns
    -------
    The p-value; NaN if all x of some sample are equal, or if there is no sample.

    Source: permutation tests; Good, Permutation, parametric, and bootstrap tests of hypotheses.
    """
    found, chances = Fraction(0), {Fraction(0): 1.0}
    for of_x, of_y in zip(x, y, strict=True):
        orders = _associations_by_order(np.asarray(of_x, dtype=float), np.atleast_2d(of_y))
        if not orders:
            return np.nan
        found += orders[0]
        chances = _sums(chances, {each: n / len(orders) for each, n in Counter(orders).items()})
    if not len(x):
        return np.nan
    above = sum(chance for value, chance in chances.items() if value >= found)
    below = sum(chance for value, chance in chances.items() if value <= found)
    by_region = {"above": above, "below": below, "two-sided": 2 * min(above, below)}
    return float(min(1.0, by_region[region]))


def _associations_by_order(x: np.ndarray, y: np.ndarray) -> list[Fraction]:
    """The mean association of every order of x with the rows of y; the order of x as it is first.

    [] if all x are equal. Fractions, because equal sums have to be equal.
    """
    if len(x) > MOST_ITEMS:
        raise ValueError(f"{len(x)} items: their orders are counted for at most {MOST_ITEMS}")
    x_order, y_order = pair_order(x), sum(pair_order(row) for row in y)
    n_pairs = int(np.count_nonzero(x_order))
    orders = np.array(list(permutations(range(len(x)))))
    permuted = x_order[orders[:, :, None], orders[:, None, :]]
    concordant = (permuted * y_order).sum(axis=(1, 2)).tolist()
    return [Fraction(n, n_pairs * len(y)) for n in concordant] if n_pairs else []


def _sums(one: dict[Fraction, float], other: dict[Fraction, float]) -> dict[Fraction, float]:
    """The distribution of the sum of two independent numbers."""
    found: dict[Fraction, float] = {}
    for (a, of_a), (b, of_b) in product(one.items(), other.items()):
        found[a + b] = found.get(a + b, 0.0) + of_a * of_b
    return found


def pair_order(values: ArrayLike) -> np.ndarray:
    """Sign int[n, n] of the difference of every pair; 0 if it is rounding only.

    inf is a value like any other.
    """
    rank = np.unique(with_exact_ties(values), return_inverse=True)[1]
    return np.sign(rank[:, None] - rank)


def off_diagonal_mean(matrix: np.ndarray) -> float:
    """Mean over the pairs of different items; NaN if there is only one item."""
    pairs = len(matrix) * (len(matrix) - 1)
    return matrix.sum() / pairs if pairs else np.nan
