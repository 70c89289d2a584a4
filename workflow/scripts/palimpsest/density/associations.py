"""Rank correlations, plain and at equal values of a third variable."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import numeric
from palimpsest.errors import UserError
from palimpsest.statistics import with_exact_ties

# A polynomial of this degree follows a curve of ranks closely, whatever its steps are. Example: a
# loss falls steeply in the middle of z, and does not depend on x at equal z. Its partial rank
# correlation with x is -0.12 with straight lines and 0.00 with this degree.
DEGREE = 5


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rank correlation of x and y, float[n]; infinite values are the largest ranks.

    NaN if there are fewer than three values, if x or y does not vary, or if one of their values is
    NaN, because its rank is unknown.

    Raises `UserError` if the lengths differ.
    """
    ranks = [_ranks(each) for each in _checked(x=x, y=y)]
    return _cosine(*(own - own.mean() for own in ranks)) if len(ranks[0]) > 2 else np.nan


def spearman_given(x: ArrayLike, y: ArrayLike, given: ArrayLike) -> float:
    """The partial rank correlation of x and y, float[n], at equal ranks of `given`, float[n].

    The ranks of x and of y are taken beyond a smooth curve on the ranks of `given` (`beyond_rank`),
    and are then correlated. The usual partial correlation uses straight lines instead of curves. It
    is not 0 where x and y both follow `given` along a curve and nothing else connects them.

    NaN if there are fewer than three values, if `given` does not vary, if `given` determines the
    rank of x or of y, or if a value is NaN, because its rank is unknown.

    Raises `UserError` if the lengths differ.
    """
    x, y, given = _checked(x=x, y=y, given=given)
    if len(given) < 3 or np.ptp(_ranks(given)) == 0:
        return np.nan
    return _cosine(beyond_rank(x, given), beyond_rank(y, given))


def beyond_rank(x: ArrayLike, given: ArrayLike) -> np.ndarray:
    """What the ranks of x have beyond a smooth curve on the ranks of `given`; all float[n].

    The curve is the polynomial of degree 5 with the least squares. If `given` has six distinct
    values or fewer, the curve is the mean rank at each of them. Rounding errors become 0. If
    a value is NaN, all of the result is NaN.

    Raises `UserError` if the lengths differ.
    """
    x, given = _checked(x=x, given=given)
    if not len(x) or np.isnan(x).any() or np.isnan(given).any():
        return np.full(len(x), np.nan)
    rank, at = _ranks(x), _ranks(given)
    spread = at.max() - at.min()
    scaled = (at - at.min()) / spread * 2 - 1 if spread else at * 0
    degree = min(DEGREE, len(np.unique(at)) - 1)
    # Legendre polynomials, because powers are nearly the same columns.
    curve = np.polynomial.legendre.legvander(scaled, degree)
    beyond = rank - curve @ np.linalg.lstsq(curve, rank, rcond=None)[0]
    beyond[np.abs(beyond) < 1e-9 * len(rank)] = 0
    return beyond


def _checked(**named: ArrayLike) -> list[np.ndarray]:
    """Values as float64[n]; the keys name them in messages. `UserError` if the lengths differ."""
    found = {name: _numbers(name, values) for name, values in named.items()}
    (first, n), *others = ((name, len(values)) for name, values in found.items())
    for name, other in others:
        if other != n:
            raise UserError(f"{name}: has {other} values, and {first} {n}; give equally many")
    return list(found.values())


def _numbers(name: str, values: ArrayLike) -> np.ndarray:
    try:
        array = numeric(np.asarray(values))
    except (TypeError, ValueError, OverflowError):
        raise UserError(f"{name}: has a value that is no number; leave its string out") from None
    if array.ndim != 1:
        raise UserError(f"{name}: has {array.ndim} axes and must have one")
    return array.astype(float)


def _ranks(values: ArrayLike) -> np.ndarray:
    """Ranks float[n] of the values; values that are equal up to rounding share their mean rank."""
    # Imported here, because scipy loads slowly and light modules import this one.
    from scipy.stats import rankdata

    return rankdata(with_exact_ties(values))


def _cosine(x: np.ndarray, y: np.ndarray) -> float:
    """Correlation of two variables of mean 0; NaN where one does not vary."""
    spread = np.sqrt((x @ x) * (y @ y))
    return float(x @ y / spread) if spread else np.nan
