"""Vectors of length 1, and counts of n-grams as embeddings: the baseline that needs no model."""

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from palimpsest.errors import UserError

LONGEST = 3  # symbols, or words of a text, in a row


def ngram_vectors(strings: Sequence[Sequence[str]]) -> np.ndarray:
    """Vectors float64[n, D] of length 1: how often each n-gram occurs in each string.

    An n-gram is one to three symbols in a row. D is the number of n-grams that occur in any of
    the strings, so only vectors of one call can be compared. Equal strings have equal vectors.
    """
    counts = [ngram_counts(string) for string in strings]
    place = {
        ngram: number for number, ngram in enumerate(dict.fromkeys(n for c in counts for n in c))
    }
    vectors = np.zeros((len(counts), len(place)))
    for row, found in zip(vectors, counts, strict=True):
        row[[place[ngram] for ngram in found]] = list(found.values())
    return of_length_one(vectors)


def ngram_counts(string: Sequence[str]) -> Counter:
    """How often each n-gram occurs in a string."""
    symbols = tuple(string)
    return Counter(
        symbols[start : start + n]
        for n in range(1, LONGEST + 1)
        for start in range(len(symbols) - n + 1)
    )


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
