"""The lowercase attack: members lose more when their capital letters are taken away."""

import numpy as np

from palimpsest.audit.membership.attack import LOWERCASE, Attack, Given, losses


def score(given: Given) -> np.ndarray:
    """float64[texts]: the loss of the text in lower case, over that of the text."""
    return losses(given.changed[LOWERCASE]) / np.maximum(losses(given.target), SMALLEST)


SMALLEST = 1e-10  # nats per token

ATTACK = Attack(
    "lowercase",
    "lower case",
    "Carlini et al., Extracting Training Data from Large Language Models (2021)",
    score,
    needs=(LOWERCASE,),
)
