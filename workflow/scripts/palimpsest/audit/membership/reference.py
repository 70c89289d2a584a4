"""The reference attack: members have a lower loss than another model gives them."""

import numpy as np

from palimpsest.audit.membership.attack import REFERENCE, Attack, Given


def score(given: Given) -> np.ndarray:
    """float64[texts]: the reference's loss minus the target's, nats per byte of the text.

    Two models may cut a text into different tokens, so losses are compared per byte.
    """
    return (given.reference.nll - given.target.nll) / given.n_bytes


ATTACK = Attack(
    "reference",
    "reference ratio",
    "Carlini et al., Extracting Training Data from Large Language Models (2021)",
    score,
    needs=(REFERENCE,),
)
