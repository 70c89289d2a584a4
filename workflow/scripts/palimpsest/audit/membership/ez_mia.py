"""EZ-MIA: where the model errs, members became more probable than under a reference model."""

import numpy as np

from palimpsest.audit.membership.attack import REFERENCE, SAME_TOKENS, Attack, Given

NO_ERROR = 1.0  # a text without errors is recited


def score(given: Given) -> np.ndarray:
    """float64[texts]: the share of rises in all changes of log probability at the errors.

    An error is a token that is not the most probable one of the target. The paper's score is the
    sum of the rises over that of the falls, which grows with this share.
    """
    target, reference = given.target, given.reference
    change = np.where(target.rank > 1, target.log_prob - reference.log_prob, 0.0)
    rises = np.array([own[own > 0].sum() for own in target.split(change)])
    falls = np.array([-own[own < 0].sum() for own in target.split(change)])
    whole = rises + falls
    return np.divide(rises, whole, out=np.full_like(whole, NO_ERROR), where=whole > 0)


ATTACK = Attack(
    "ez_mia",
    "EZ-MIA",
    "Ilic et al., Powerful Training-Free Membership Inference (2026)",
    score,
    needs=(REFERENCE, SAME_TOKENS),
)
