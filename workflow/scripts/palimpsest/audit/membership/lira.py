"""LiRA, offline: a member's confidence is far above that of models trained without it."""

import numpy as np

from palimpsest.audit.membership.attack import RETRAINED, Attack, Given
from palimpsest.audit.optimum import LEAST_SPREAD
from palimpsest.unlearning import logit_scaled_confidence


def score(given: Given) -> np.ndarray:
    """float64[texts]: how far the confidence is above the mean of the others, in deviations.

    The confidence is the logit of the probability per token. All texts share the deviation, as the
    authors advise for few models.
    """
    confidence, others = (logit_scaled_confidence(loss, 1) for loss in given.retrained)
    spread = np.sqrt(others.var(axis=0, ddof=1).mean()) + LEAST_SPREAD
    return (confidence - others.mean(axis=0)) / spread


ATTACK = Attack(
    "lira",
    "LiRA (offline)",
    "Carlini et al., Membership Inference Attacks From First Principles (2022), section 5.2",
    score,
    needs=(RETRAINED,),
)
