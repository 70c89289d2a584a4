"""RMIA, offline: a member beats other texts in the ratio of its probability under two models."""

import numpy as np

from palimpsest.audit.membership.attack import POPULATION, REFERENCE, Attack, Given, losses

# How near the reference is to the mean over models with and without a text, in [0, 1]. The paper's
# 0.3 is for images, of which models are nearly certain: their mean is 0.65 of the reference + 0.35.
# A token has a probability far below 0.35, so the reference would have no part in the ratio.
OFFLINE = 1.0
MARGIN = 1.0  # by which a ratio must be larger than that of another text


def score(given: Given) -> np.ndarray:
    """float64[texts]: the share of the population whose ratio is at most that of the text.

    The ratio is the text's probability per token under the target over its mean probability under
    models with and without it. The latter is estimated from the reference, which is a model
    without. A text of the population is not compared with itself.
    """
    of_reference = np.exp(-losses(given.reference))
    mean = ((1 + OFFLINE) * of_reference + (1 - OFFLINE)) / 2
    ratio = np.exp(-losses(given.target)) / mean
    inside = given.population
    of_population = np.sort(ratio[inside])
    beaten = np.searchsorted(of_population * MARGIN, ratio, side="right") - inside
    return beaten / np.maximum(len(of_population) - inside, 1)


ATTACK = Attack(
    "rmia",
    "RMIA (offline)",
    "Zarifzadeh et al., Low-Cost High-Power Membership Inference Attacks (2024)",
    score,
    needs=(REFERENCE, POPULATION),
)
