"""ReCaLL: texts that were not trained on make a member less probable, and others not."""

import numpy as np

from palimpsest.audit.membership.attack import PREFIXED, Attack, Given, losses
from palimpsest.audit.membership.lowercase import SMALLEST


def score(given: Given) -> np.ndarray:
    """float64[texts]: the loss of the text after other texts, over its loss alone."""
    return losses(given.changed[PREFIXED]) / np.maximum(losses(given.target), SMALLEST)


ATTACK = Attack(
    "recall",
    "ReCaLL",
    "Xie et al., ReCaLL: Membership Inference via Relative Conditional Log-Likelihoods (2024)",
    score,
    needs=(PREFIXED,),
)
