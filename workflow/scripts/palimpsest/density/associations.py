"""Rank correlations, plain and at equal values of a third variable."""

import numpy as np
from numpy.typing import ArrayLike


def spearman(x: ArrayLike, y: ArrayLike) -> float:
    """Spearman's rank correlation of x and y, float[n]; infinite values are the largest ranks.

    NaN if there are fewer than three values, or if x or y does not vary.
    """
    return float(_of_ranks(x, y)[0, 1])


def spearman_given(x: ArrayLike, y: ArrayLike, given: ArrayLike) -> float:
    """The partial rank correlation of x and y, float[n], at equal ranks of `given`, float[n].

    NaN also if `given` does not vary, or determines the rank of x or of y.
    """
    ranks = _of_ranks(x, y, given)
    (xy, xz), yz = ranks[0, 1:], ranks[1, 2]
    left = (1 - xz**2) * (1 - yz**2)
    return float((xy - xz * yz) / np.sqrt(left)) if left > 1e-12 else np.nan


def beyond_rank(x: ArrayLike, given: ArrayLike) -> np.ndarray:
    """What the ranks of x have beyond a straight line on the ranks of `given`; all float[n]."""
    from scipy.stats import rankdata

    own, other = (rankdata(values) - (len(values) + 1) / 2 for values in (x, given))
    spread = other @ other
    return own - other * (own @ other / spread if spread else 0.0)


def _of_ranks(*variables: ArrayLike) -> np.ndarray:
    """The correlations float[variables, variables] of ranks; NaN where a variable does not vary."""
    # Imported here, because scipy loads slowly and light modules import this one.
    from scipy.stats import rankdata

    ranks = np.array([rankdata(variable) for variable in variables])
    if ranks.shape[1] < 3:
        return np.full((len(ranks), len(ranks)), np.nan)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.corrcoef(ranks)
