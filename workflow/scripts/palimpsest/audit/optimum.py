"""Attacks that know models trained with and without each text, and how good a test can be.

Among all tests that see one loss of a text, the ratio of its likelihoods under models with and
without the text is the best one (Neyman and Pearson). With many models of each kind, the ratio can
be estimated, so each cheaper attack can be put as a share of what is possible. An estimate finds
less than the true ratio, by more the smaller the effect is, so such a share is rather too high.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.arguments import Names, Numbers, Truths, Wholes, takes
from palimpsest.unlearning import logit_scaled_confidence

LEAST_SPREAD = 1e-6  # of confidences; models that agree even more would divide by 0
FEWEST = 4  # models of each kind that judge another one


@takes(loss=Numbers("models", "texts"), inside=Truths("models", "texts"), unit=Names("models"))
def lira_online(loss: ArrayLike, inside: ArrayLike, unit: ArrayLike | None = None) -> np.ndarray:
    """LiRA with models of both kinds: log ratio of two normal likelihoods of the confidence.

    Each model is judged by all models of other units. The spread is shared by all texts, as the
    authors advise for fewer than 64 models.

    Parameters
    ----------
    loss : float[models, texts], of each text under each model, nats per token
    inside : bool[models, texts], whether the model was trained on the text
    unit : str or int[models] or None
        Models that have something in common, such as their initial weights, so that they must not
        judge each other. None: each model is a unit of its own.

    Returns float[models, texts]: higher for texts that are taken for members of a model's data.

    Raises `ValueError` if a model is judged by fewer than four models of a kind.

    Source: Carlini et al., Membership Inference Attacks From First Principles (2022), algorithm 1,
    with the logit of the probability per token as the confidence.
    """
    seen = _Seen(loss, inside, unit)
    likelihoods = []
    for kind in (seen.inside, ~seen.inside):
        mean, variance = seen.of_others(seen.confidence, kind)
        spread = _shared(variance)
        likelihoods.append(-np.square((seen.confidence - mean) / spread) / 2 - np.log(spread))
    return likelihoods[0] - likelihoods[1]


@takes(loss=Numbers("models", "texts"), inside=Truths("models", "texts"), unit=Names("models"))
def lira_offline(loss: ArrayLike, inside: ArrayLike, unit: ArrayLike | None = None) -> np.ndarray:
    """LiRA with models without the text alone: how far its confidence is above theirs.

    In deviations. For parameters, result, errors and source see `lira_online` (section 5.2 of the
    paper).
    """
    seen = _Seen(loss, inside, unit)
    mean, variance = seen.of_others(seen.confidence, ~seen.inside)
    return (seen.confidence - mean) / _shared(variance)


@takes(
    loss=Numbers("models", "tokens"),
    text=Wholes("tokens"),
    inside=Truths("models", "texts"),
    unit=Names("models"),
)
def lira_of_tokens(
    loss: ArrayLike, text: ArrayLike, inside: ArrayLike, unit: ArrayLike | None = None
) -> np.ndarray:
    """LiRA, online, of each token of a text; the log ratios of its tokens are summed.

    So it sees where a text became more probable, and not only by how much in all. Each token has
    means and spreads of its own, as if tokens were independent.

    Parameters
    ----------
    loss : float[models, tokens], of each token of all texts under each model, nats
    text : int[tokens], the place of the token's text, rising from 0
    inside : bool[models, texts], whether the model was trained on the text
    unit : see `lira_online`, as for the result and the error
    """
    text = np.asarray(text)
    seen = _Seen(loss, np.asarray(inside, dtype=bool)[:, text], unit)
    ratio = np.zeros_like(seen.confidence)
    for kind, sign in ((seen.inside, -1), (~seen.inside, 1)):
        mean, variance = seen.of_others(seen.confidence, kind)
        variance += LEAST_SPREAD**2
        ratio += sign * (np.square(seen.confidence - mean) / variance + np.log(variance)) / 2
    return np.add.reduceat(ratio, np.flatnonzero(np.diff(text, prepend=-1)), axis=1)


@takes(loss=Numbers("models", "texts"), inside=Truths("models", "texts"), unit=Names("models"))
def calibrated(loss: ArrayLike, inside: ArrayLike, unit: ArrayLike | None = None) -> np.ndarray:
    """The mean loss of models without the text minus its loss: a reference for each text.

    For parameters, result and errors see `lira_online`.

    Source: Watson et al., On the Importance of Difficulty Calibration in Membership Inference
    Attacks (2022).
    """
    seen = _Seen(loss, inside, unit)
    return seen.of_others(seen.loss, ~seen.inside)[0] - seen.loss


@takes(loss=Numbers("models", "texts"), inside=Truths("models", "texts"), unit=Names("models"))
def optimum(loss: ArrayLike, inside: ArrayLike, unit: ArrayLike | None = None) -> np.ndarray:
    """Log ratio of likelihoods that are estimated for each text, without a normal distribution.

    Each likelihood is a mean of kernels over the others' confidences (Gaussian, with Silverman's
    bandwidth for each text and kind). For parameters, result and errors see `lira_online`.
    """
    seen = _Seen(loss, inside, unit)
    densities = []
    for kind in (seen.inside, ~seen.inside):
        n = seen.judges.astype(float) @ kind
        _, variance = seen.of_others(seen.confidence, kind)
        bandwidth = 1.06 * (np.sqrt(variance) + LEAST_SPREAD) * n**-0.2
        density = np.empty_like(bandwidth)
        for model, judges in enumerate(seen.judges):
            apart = (seen.confidence[model] - seen.confidence[judges]) / bandwidth[model]
            density[model] = (np.exp(-np.square(apart) / 2) * kind[judges]).sum(axis=0)
        # A tail that no model reached is as thin as one kernel at its edge allows.
        densities.append(np.log(np.maximum(density / n / bandwidth, np.finfo(float).tiny)))
    return densities[0] - densities[1]


OF_MODELS: Mapping[str, Callable[..., np.ndarray]] = {
    "LiRA, online": lira_online,
    "LiRA, offline": lira_offline,
    "calibrated loss": calibrated,
}


class _Seen:
    """What is known of the models: losses and confidences, and which models judge which."""

    def __init__(self, loss: ArrayLike, inside: ArrayLike, unit: ArrayLike | None):
        self.loss, self.inside = np.asarray(loss, dtype=float), np.asarray(inside, dtype=bool)
        self.confidence = logit_scaled_confidence(self.loss, 1)
        units = np.arange(len(self.loss)) if unit is None else np.asarray(unit)
        self.judges = units[:, None] != units  # bool[models, models]
        fewest = min(
            int((self.judges.astype(int) @ kind).min()) for kind in (self.inside, ~self.inside)
        )
        if fewest < FEWEST:
            raise ValueError(
                f"a model is judged by {fewest} other models with or without a text; train "
                f"{FEWEST} or more with each text, and as many without it"
            )

    def of_others(self, values: np.ndarray, kind: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and variance float[models, texts] of the values of a model's judges of a kind."""
        judges = self.judges.astype(float)
        n = judges @ kind
        mean = judges @ (values * kind) / n
        centred = (values - values.mean(axis=0)) * kind
        square = judges @ np.square(centred) / n - np.square(judges @ centred / n)
        return mean, np.maximum(square, 0) * n / (n - 1)


def _shared(variance: np.ndarray) -> np.ndarray:
    """The spread float[models, 1] that the texts of a model share."""
    return np.sqrt(variance.mean(axis=1, keepdims=True)) + LEAST_SPREAD
