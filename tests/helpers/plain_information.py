"""Mutual information of two neurons in a few lines, from the distances of all pairs of samples."""

import numpy as np
from scipy.special import digamma


def brute_force(
    x: np.ndarray, y: np.ndarray, k: int, standardise: bool = True, itself: int = 1
) -> float:
    """The first estimator of Kraskov, Stögbauer and Grassberger (2004), in nats.

    `x` and `y` are float[samples] without equal values. With `itself` 0, a point is not counted
    among those that are near it.
    """
    if standardise:
        x, y = ((own - own.mean()) / (own - own.mean()).std() for own in (x, y))
    apart_x, apart_y = (np.abs(own[:, None] - own) for own in (x, y))
    apart = np.maximum(apart_x, apart_y)
    np.fill_diagonal(apart, np.inf)
    radius = np.partition(apart, k - 1, axis=1)[:, k - 1, None]
    # A point is at distance 0 from itself.
    n_x, n_y = ((own < radius).sum(axis=1) - 1 + itself for own in (apart_x, apart_y))
    return digamma(k) + digamma(len(x)) - np.mean(digamma(n_x) + digamma(n_y))
