"""Min-K%++: as Min-K%, with each token's probability standardised by the model's own draws."""

import numpy as np

from palimpsest.audit.membership.attack import Attack, Given, lowest_mean
from palimpsest.audit.membership.min_k import SHARE


def score(given: Given) -> np.ndarray:
    """float64[texts]: the mean of the lowest fifth of (log probability - mean) / deviation.

    Mean and deviation are those of a token that the model itself draws in the place. Where the
    model has no doubt, there is no deviation; the token then counts as an average one.
    """
    target = given.target
    distance = target.log_prob - target.mean
    standard = np.divide(
        distance, target.deviation, out=np.zeros_like(distance), where=target.deviation > 0
    )
    return lowest_mean(target.split(standard), SHARE)


ATTACK = Attack(
    "min_k_plus",
    "Min-K%++",
    "Zhang et al., Min-K%++: Improved Baseline for Detecting Pre-Training Data (2024)",
    score,
)
