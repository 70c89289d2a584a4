"""The zlib attack: members have a loss that is low for how well they can be compressed."""

import zlib

import numpy as np

from palimpsest.audit.membership.attack import Attack, Given, losses


def score(given: Given) -> np.ndarray:
    """float64[texts]: minus the loss per token, over the bytes of the compressed text."""
    compressed = [len(zlib.compress(text.encode())) for text in given.texts]
    return -losses(given.target) / np.array(compressed)


ATTACK = Attack(
    "zlib",
    "zlib",
    "Carlini et al., Extracting Training Data from Large Language Models (2021)",
    score,
)
