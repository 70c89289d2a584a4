"""The attack by neighbours: members have a lower loss than texts that differ in a few words."""

import numpy as np

from palimpsest.audit.membership.attack import NEIGHBOURS, Attack, Given, losses


def score(given: Given) -> np.ndarray:
    """float64[texts]: mean loss of the neighbours minus that of the text, nats per token."""
    of_neighbours = losses(given.changed[NEIGHBOURS]).reshape(len(given.texts), -1)
    return of_neighbours.mean(axis=1) - losses(given.target)


ATTACK = Attack(
    "neighbours",
    "neighbours",
    "Mattern et al., Membership Inference Attacks via Neighbourhood Comparison (2023)",
    score,
    needs=(NEIGHBOURS,),
)
