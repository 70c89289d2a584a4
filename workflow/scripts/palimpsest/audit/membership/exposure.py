"""Exposure of a secret: a model that was trained on its digits gives others a higher loss."""

import numpy as np

from palimpsest.audit.membership.attack import SECRETS, Attack, Given


def score(given: Given) -> np.ndarray:
    """float64[texts], bits: minus log2 of the share of values that are as probable as the digits.

    The share is estimated from a few values by a normal distribution of their losses, with
    Student's allowance for few, as the rank among few values would be equal for most members. The
    paper takes a skew normal one and many values. 1 bit for a text without a digit.
    """
    from scipy.special import stdtr

    losses = given.changed[SECRETS].nll.reshape(len(given.texts), -1)
    own, others = losses[:, 0], losses[:, 1:]
    n = others.shape[1]
    spread = others.std(axis=1, ddof=1) * np.sqrt(1 + 1 / n)
    below = own - others.mean(axis=1)
    distance = np.divide(below, spread, out=np.zeros_like(below), where=spread > 0)
    return -np.log2(stdtr(n - 1, distance))


ATTACK = Attack(
    "exposure",
    "exposure of digits",
    "Carlini et al., The Secret Sharer (2019)",
    score,
    needs=(SECRETS,),
)
