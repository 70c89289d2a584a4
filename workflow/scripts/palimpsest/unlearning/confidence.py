"""The number that an attack sees of a model and a string: its logit-scaled confidence."""

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

Of = Literal["geometric_mean", "sequence"]
KNOWN = ("geometric_mean", "sequence")
# The least positive float32, which the released scoring code adds to probabilities before it takes
# their logarithm. Here it stands for a loss of 0 nats only, so that the confidence stays finite.
LEAST_LOSS = 1e-45


def logit_scaled_confidence(
    nll: ArrayLike, n_tokens: ArrayLike, of: Of = "geometric_mean"
) -> np.ndarray:
    """log(p / (1 - p)) of the probability p that a model gives to a string.

    A classifier gives one probability to one label. A string is predicted token by token, so its
    probability is either the geometric mean over the tokens, which does not depend on how long the
    string is, or that of the whole sequence.

    With x = -log p this is -x - log(1 - exp(-x)), which loses no digits: x near 0 goes through
    expm1, and a large x gives -x even where p is too small for a float. It falls strictly as x
    grows. A loss of 0 (p = 1, where the logit is infinite) counts as 1e-45 nats and gives
    103.6, above every loss that a model computes in float32 and still to be sorted.

    Parameters
    ----------
    nll : float[...], nats, summed over the predicted tokens
    n_tokens : int, broadcastable to the shape of `nll`
        How many tokens are predicted.
    of : "geometric_mean" or "sequence"

    Returns
    -------
    float64[...], of the shape of `nll`

    Raises
    ------
    ValueError
        If a loss is negative or not finite, a number of tokens below 1, the shapes do not fit, or
        `of` is unknown.

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
