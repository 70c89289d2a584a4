"""Min-K%: members have no very improbable tokens."""

import numpy as np

from palimpsest.audit.membership.attack import Attack, Given, lowest_mean

SHARE = 0.2  # of the tokens


def score(given: Given) -> np.ndarray:
    """float64[texts]: mean log probability of the least probable fifth of the tokens, nats."""
    return lowest_mean(given.target.split(given.target.log_prob), SHARE)


ATTACK = Attack("min_k", "Min-K%", "Shi et al., Detecting Pretraining Data from LLMs (2023)", score)
