"""Vectors of length 1, in a module that loads fast."""

from collections.abc import Callable

import numpy as np

from palimpsest.errors import UserError


def of_length_one(
    vectors: np.ndarray,
    name: Callable[[int], str] = "embeddings: that of string {}".format,
    remedy: str = "lower the learning rate of the model, and train it again",
) -> np.ndarray:
    """The vectors float[n, D], each divided by its length.

    `name` gives the name of a row in the message, and `remedy` the end of the message.

    Raises `UserError` if a vector is 0 or not finite.
    """
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    wrong = ~(np.isfinite(lengths) & (lengths > 0))
    if wrong.any():
        raise UserError(
            f"{name(int(np.argmax(wrong)))} is 0 or not finite, so it has no direction; {remedy}"
        )
    return vectors / lengths
