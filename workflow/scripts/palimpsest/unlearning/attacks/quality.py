"""The forgetting quality, computed from the epsilons of all strings, and the final score."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.allowed import Number, checked_number, checked_numbers
from palimpsest.statistics import rounding_error

BIN_WIDTH = 0.5
BIN_WIDTHS, MODELS = Number(above=0), Number(least=2, whole=True)


def largest_epsilon(n_models: int) -> float:
    """ceil(ln(n_models - 1)), about the largest epsilon that `n_models` models of a kind can show.

    The smallest error rate above 0 is one error in n_models - 1. The cap of 50 stands for an
    epsilon of this size or more. So epsilons are clipped here before they are summed, averaged or
    correlated: otherwise, one string on the cap outweighs all other strings.

    Raises
    ------
    ValueError
        If there are fewer than 2 models.

    Source: the released scoring code of Are we making progress in unlearning?
    """
    checked_number("n_models", n_models, MODELS, ", the models of each kind")
    return float(np.ceil(np.log(n_models - 1)))


def points(epsilons: ArrayLike, n_models: int, bin_width: float = BIN_WIDTH) -> np.ndarray:
    """Points of every example: 1 in the first bin of epsilon, then half of the bin before.

    H = 2 / 2^n for bin n, counted from n = 1; that is, 2^-floor(epsilon / bin_width). For example,
    with a width of 0.5, an epsilon of 0.7 gives 0.5 points. An epsilon of `largest_epsilon` or more
    gives no points (released scoring code).

    Parameters
    ----------
    epsilons : float[...], 0 or more; infinity is allowed and gives no points
    n_models : int
        The number of models of each kind that gave the epsilons; the smaller number if they differ.
    bin_width : float

    Returns
    -------
    float64[...] in [0, 1]

    Raises
    ------
    ValueError
        If an epsilon is negative or NaN, if there are fewer than 2 models, or if `bin_width` is not
        positive and finite.

    Source: Are we making progress in unlearning?, section 3.1.2.
    """
    epsilons = checked_numbers("epsilons", epsilons)
    if not (epsilons >= 0).all():
        raise ValueError("epsilons must be 0 or more, and none may be NaN")
    most = largest_epsilon(n_models)
    checked_number("bin_width", bin_width, BIN_WIDTHS)
    bins = epsilons / bin_width
    # An epsilon at the edge of a bin is in the upper one, whatever the last bit of the quotient is.
    edges = np.round(bins)
    with np.errstate(invalid="ignore"):  # an infinite epsilon is at no edge
        is_edge = np.abs(bins - edges) <= rounding_error(edges, 1)
    return np.where(epsilons < most, np.exp2(-np.where(is_edge, edges, np.floor(bins))), 0.0)


def forgetting_quality(epsilons: ArrayLike, n_models: int, bin_width: float = BIN_WIDTH) -> float:
    """Forgetting quality F: the mean of the points of all examples of the forget set.

    F is 1 if no attack can tell unlearned from retrained models on any example, and 0 if attacks
    succeed on all examples. For parameters and errors see `points`; there must be at least one
    example.

    Source: Are we making progress in unlearning?, section 3.1.2.
    """
    if np.size(epsilons) == 0:
        raise ValueError("forgetting quality needs the epsilon of at least one example")
    return float(points(epsilons, n_models, bin_width).mean())


def final_score(
    quality: float,
    retain_accuracy: float,
    retain_accuracy_retrained: float,
    test_accuracy: float,
    test_accuracy_retrained: float,
) -> float:
    """Forgetting quality times two ratios of utility, unlearned to retrained: retain and test.

    The paper's utility is accuracy, the share of right tokens. Accuracy hardly moves where the most
    probable token stays the same while its probability falls, as on a grammar. An alternative is
    the mean probability of strings, `Predictions.probability`. Both are between 0 and 1.

    A ratio may be above 1, as in the paper, if unlearned models are better than retrained models.

    Parameters
    ----------
    quality : float in [0, 1]
    retain_accuracy, test_accuracy : float in [0, 1]
        Accuracy, or mean probability; means over the unlearned models.
    retain_accuracy_retrained, test_accuracy_retrained : float in (0, 1]
        The same for the retrained models.

    Raises
    ------
    ValueError
        If a value is outside of its range, or NaN.

    Source: Are we making progress in unlearning?, equation 2 and Algorithm 1; for the probability,
    Maini et al., TOFU (2024).
    """
    shares = {
        "quality": quality,
        "retain_accuracy": retain_accuracy,
        "retain_accuracy_retrained": retain_accuracy_retrained,
        "test_accuracy": test_accuracy,
        "test_accuracy_retrained": test_accuracy_retrained,
    }
    for name, value in shares.items():
        if not 0 <= value <= 1 or (value == 0 and name.endswith("retrained")):
            least = "above 0" if name.endswith("retrained") else "0 or more"
            raise ValueError(f"{name} must be {least} and at most 1, not {value}")
    retain = retain_accuracy / retain_accuracy_retrained
    return float(quality * retain * (test_accuracy / test_accuracy_retrained))
