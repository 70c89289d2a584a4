"""Attacks that know models trained with and without each text, and how good a test can be.

Among all tests that see one loss of a text, the ratio of its likelihoods under models with and
without the text is the best one (Neyman and Pearson). With many models of each kind, the ratio can
be estimated, so each cheaper attack can be put as a share of what is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

LEAST_SPREAD = 1e-6  # of losses, nats per token; models that agree even more would divide by 0
FEWEST = 4  # models of each kind


def lira_online(loss: ArrayLike, inside: ArrayLike) -> np.ndarray:
    """LiRA with models of both kinds: log ratio of two normal likelihoods.

    Each model is judged by all other models. The spread is shared by all texts, as the authors
    advise for fewer than 64 models.

    Parameters
    ----------
    loss : float[models, texts], of each text under each model, nats per token
    inside : bool[models, texts], whether the model was trained on the text

    Returns float[models, texts]: higher for texts that are taken for members of a model's data.

    Raises `ValueError` if a text has fewer than four models of a kind.

    Source: Carlini et al., Membership Inference Attacks From First Principles (2022), algorithm 1.
    """
    loss, inside = _checked(loss, inside)
    likelihoods = []
    for kind in (inside, ~inside):
        mean, spread = _of_others(loss, kind)
        likelihoods.append(-np.square((loss - mean) / spread) / 2 - np.log(spread))
    return likelihoods[0] - likelihoods[1]


def lira_offline(loss: ArrayLike, inside: ArrayLike) -> np.ndarray:
    """LiRA with models without the text alone: how far its loss is below theirs, in deviations.

    For parameters, result and source see `lira_online` (section 5.2 of the paper).
    """
    loss, inside = _checked(loss, inside)
    mean, spread = _of_others(loss, ~inside)
    return (mean - loss) / spread


def calibrated(loss: ArrayLike, inside: ArrayLike) -> np.ndarray:
    """The mean loss of models without the text minus its loss: a reference for each text.

    For parameters and result see `lira_online`.

    Source: Watson et al., On the Importance of Difficulty Calibration in Membership Inference
    Attacks (2022).
    """
    loss, inside = _checked(loss, inside)
    return _of_others(loss, ~inside)[0] - loss


def optimum(loss: ArrayLike, inside: ArrayLike) -> np.ndarray:
    """Log ratio of likelihoods that are estimated for each text, without a normal distribution.

    Each likelihood is a mean of kernels over the other models' losses (Gaussian, with Silverman's
    bandwidth for each text and kind). For parameters, result and errors see `lira_online`.
    """
    loss, inside = _checked(loss, inside)
    densities = []
    for kind in (inside, ~inside):
        n = kind.sum(axis=0)
        spread = np.sqrt(_variance(loss, kind, n)) + LEAST_SPREAD
        bandwidth = 1.06 * spread * n**-0.2
        apart = (loss[:, None] - loss[None]) / bandwidth
        kernels = np.exp(-np.square(apart) / 2) * kind
        kernels[np.arange(len(loss)), np.arange(len(loss))] = 0  # a model does not judge itself
        others = n - kind
        # A tail that no model reached is as thin as one kernel at its edge allows.
        density = kernels.sum(axis=1) / others / bandwidth
        densities.append(np.log(np.maximum(density, np.finfo(float).tiny)))
    return densities[0] - densities[1]


OF_MODELS: Mapping[str, Callable[[ArrayLike, ArrayLike], np.ndarray]] = {
    "LiRA, online": lira_online,
    "LiRA, offline": lira_offline,
    "calibrated loss": calibrated,
}


def _checked(loss: ArrayLike, inside: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    loss, inside = np.asarray(loss, dtype=float), np.asarray(inside, dtype=bool)
    if loss.shape != inside.shape or loss.ndim != 2:
        raise ValueError(
            f"loss and inside must both be [models, texts]: {loss.shape} and {inside.shape}"
        )
    n = inside.sum(axis=0)
    fewest = min(n.min(), (len(inside) - n).min())
    if fewest < FEWEST:
        raise ValueError(
            f"a text has {fewest} models of a kind; train {FEWEST} or more with each text, and as "
            "many without it"
        )
    return loss, inside


def _of_others(loss: np.ndarray, kind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean float[models, texts] and spread of the losses of a kind of models, but for each model.

    The spread is one number for each model: its texts share it.
    """
    n = kind.sum(axis=0) - kind
    mean = ((loss * kind).sum(axis=0) - loss * kind) / n
    square = ((loss**2 * kind).sum(axis=0) - loss**2 * kind) / n
    variance = np.maximum(square - mean**2, 0) * n / (n - 1)
    return mean, np.sqrt(variance.mean(axis=1, keepdims=True)) + LEAST_SPREAD


def _variance(loss: np.ndarray, kind: np.ndarray, n: np.ndarray) -> np.ndarray:
    mean = (loss * kind).sum(axis=0) / n
    return (np.square(loss - mean) * kind).sum(axis=0) / (n - 1)
