"""The Kolmogorov-Smirnov test between unlearned and retrained models, one test for all strings."""

import math

import numpy as np

from palimpsest.statistics import with_exact_ties

RELABELLINGS = 999
SEED = 0  # of the relabellings; the same for all methods and problems
CHUNK = 2**22  # numbers of one chunk of relabellings


def ks_p_value(
    unlearned: np.ndarray,
    retrained: np.ndarray,
    relabellings: int = RELABELLINGS,
    seed: int = SEED,
) -> float:
    """P-value of the hypothesis that unlearned and retrained models have the same losses.

    For each string, the two samples are its losses in the unlearned and in the retrained models.
    They are independent, unlike the losses of many strings in two models. The statistic is
    the largest of `ks_distances`, and the mean decides between equal ones. The null distribution
    is that of the same models with random labels, unlearned or retrained. A model keeps its losses
    on all strings, so strings may depend on each other. Relabelling is exact for any number of
    models: if the two kinds do not differ, p is 0.05 or less in at most 5 % of cases.

    Parameters
    ----------
    unlearned : float[models, strings]
    retrained : float[others, strings]
    relabellings : int
        The smallest possible p is 1 / (relabellings + 1).
    seed : int

    Returns
    -------
    float in (0, 1]

    Source: Lehmann and Romano, Testing statistical hypotheses, section 15.2, for relabelling; TOFU
    (Maini et al. 2024) compares the strings of one model by this test, as if they were independent.
    """
    pooled = np.concatenate([unlearned, retrained])
    is_unlearned = np.arange(len(pooled)) < len(unlearned)
    chance = np.random.default_rng(seed)
    size = max(1, CHUNK // pooled.size)

    def statistic(labels: np.ndarray) -> np.ndarray:
        """The largest gap, and after it the sum of the gaps, as one whole number."""
        gaps = ks_gaps(pooled, labels)
        above_any_sum = pooled.size * len(pooled)
        return gaps.max(axis=0) * above_any_sum + gaps.sum(axis=0)

    observed = statistic(is_unlearned[None])[0]
    reached = 0
    for first in range(0, relabellings, size):
        count = min(size, relabellings - first)
        labels = chance.permuted(np.tile(is_unlearned, (count, 1)), axis=1)
        reached += int((statistic(labels) >= observed).sum())
    return (1 + reached) / (1 + relabellings)


def ks_distances(unlearned: np.ndarray, retrained: np.ndarray) -> np.ndarray:
    """Largest distance float[strings] between the distribution functions of two samples.

    `unlearned` is float[models, strings] and `retrained` is float[others, strings].
    """
    pooled = np.concatenate([unlearned, retrained])
    is_unlearned = np.arange(len(pooled)) < len(unlearned)
    unit = math.lcm(len(unlearned), len(retrained))
    return ks_gaps(pooled, is_unlearned[None])[:, 0] / unit


def ks_gaps(pooled: np.ndarray, is_unlearned: np.ndarray) -> np.ndarray:
    """Distances int64[strings, labellings] times the least common multiple of the two sizes.

    `pooled` is float[models, strings], and `is_unlearned` is bool[labellings, models], with equally
    many unlearned models in each labelling.
    """
    n = int(is_unlearned[0].sum())
    unit = math.lcm(n, len(pooled) - n)
    up, down = unit // n, unit // (len(pooled) - n)
    pooled = with_exact_ties(pooled)
    order = pooled.argsort(axis=0)
    rising = np.take_along_axis(pooled, order, axis=0)
    # Among equal losses, only the distance after the last one counts.
    is_last = np.ones(pooled.shape, dtype=bool)
    is_last[:-1] = rising[1:] > rising[:-1]
    small = np.int16 if unit <= np.iinfo(np.int16).max else np.int64
    steps = np.where(is_unlearned.T, up, -down).astype(small)
    gaps = steps[order]  # [models in rising order, strings, labellings]
    np.cumsum(gaps, axis=0, out=gaps)
    np.abs(gaps, out=gaps)
    return gaps.max(axis=0, where=is_last[..., None], initial=0).astype(np.int64)
