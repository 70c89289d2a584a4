"""Logit-scaled confidence: the only number about a model and a string that an attack uses."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.arguments import Numbers, takes

Of = Literal["geometric_mean", "sequence"]
KNOWN = ("geometric_mean", "sequence")
# The smallest positive float32. The released scoring code adds it to probabilities before taking
# their logarithm. Here it only replaces a loss of 0 nats, so that the confidence stays finite.
LEAST_LOSS = 1e-45


@takes(nll=Numbers(), n_tokens=Numbers())
def logit_scaled_confidence(
    nll: ArrayLike, n_tokens: ArrayLike, of: Of = "geometric_mean"
) -> np.ndarray:
    """log(p / (1 - p)) of the probability p that a model gives to a string.

    A classifier gives one probability to one label, but a string is predicted token by token. Its
    probability p is either the geometric mean over the tokens, which does not depend on the length
    of the string, or the probability of the whole sequence.

    With x = -log p, the result is -x - log(1 - exp(-x)). This formula loses no digits: expm1
    handles x near 0, and a large x gives -x even if p is too small for a float. The result strictly
    decreases in x. A loss of 0 (p = 1, where the logit is infinite) counts as 1e-45 nats and gives
    103.6: finite, and above the confidence for any other loss that a model computes in float32.

    Parameters
    ----------
    nll : float[...], nats, summed over the predicted tokens
    n_tokens : int, broadcastable to the shape of `nll`
        The number of predicted tokens.
    of : "geometric_mean" or "sequence"

    Returns
    -------
    float64[...], of the shape of `nll`

    Raises
    ------
    ValueError
        If a loss is negative or not finite, if a number of tokens is below 1, if the shapes do not
        fit, or if `of` is unknown.

    Source: Are we making progress in unlearning?, section 3.1.1 (the function h).
    """
    if of not in KNOWN:
        raise ValueError(f"unknown confidence of {of!r}; known: {', '.join(KNOWN)}")
    nll = np.asarray(nll, dtype=float)
    wrong = ~(np.isfinite(nll) & (nll >= 0))
    if wrong.any():
        raise ValueError(
            f"nll must be finite and not negative; it is {nll[wrong][0]} "
            f"in {wrong.sum()} of {nll.size} places"
        )
    n_tokens = _tokens(n_tokens, nll.shape)
    loss = np.maximum(nll / n_tokens if of == "geometric_mean" else nll, LEAST_LOSS)
    return -loss - np.log(-np.expm1(-loss))


def _tokens(n_tokens: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of tokens in the given shape; ValueError if they do not fit or one is below 1."""
    n_tokens = np.asarray(n_tokens, dtype=float)
    try:
        n_tokens = np.broadcast_to(n_tokens, shape)
    except ValueError:
        raise ValueError(
            f"n_tokens must fit the shape of nll, {shape}, and is {n_tokens.shape}"
        ) from None
    if not (n_tokens >= 1).all() or np.isinf(n_tokens).any():
        raise ValueError("n_tokens must be 1 or more of every string")
    return n_tokens
