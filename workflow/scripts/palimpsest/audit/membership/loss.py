"""The loss attack: members have a lower loss per token."""

import numpy as np

from palimpsest.audit.membership.attack import Attack, Given, losses


def score(given: Given) -> np.ndarray:
    """float64[texts]: minus the loss, nats per token."""
    return -losses(given.target)


ATTACK = Attack("loss", "loss", "Yeom et al., Privacy Risk in Machine Learning (2018)", score)
