"""The parts of the forget set that some models are trained on, or that are learned again."""

import numpy as np

SECOND, EIGHTH = 2, 8


def every(n: int, is_forgotten: np.ndarray) -> np.ndarray:
    """bool[strings]: every n-th of the forget strings bool[strings], from the first on."""
    chosen = np.zeros_like(is_forgotten)
    chosen[np.flatnonzero(is_forgotten)[::n]] = True
    return chosen
