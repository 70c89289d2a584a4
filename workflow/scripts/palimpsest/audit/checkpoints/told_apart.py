"""Whether unlearned models can be told from retrained ones: relabelling tests, and a bound."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from palimpsest.unlearning import epsilon_lower_bound, permutation_null
from palimpsest.unlearning.attacks.joint_attacks import joint_attack, joint_p
from palimpsest.unlearning.attacks.lower_bounds import bound_of_errors

FEWEST = 4  # models on each side: 3 and 3 have 20 labellings, so no p-value of 5 % exists
SIDES = PLACEBO, UNLEARNED = "placebo", "unlearned"


def told_apart(unlearned: np.ndarray, retrained: np.ndarray) -> Iterator[dict]:
    """Rows of the table `checkpoint_tests` from logit-scaled confidences float[models, records].

    Nothing if there are fewer than four models of either kind. As the placebo, one half of the
    retrained models takes the place of the unlearned ones, if each half has four.
    """
    half = len(retrained) // 2
    sides = {UNLEARNED: (unlearned, retrained), PLACEBO: (retrained[:half], retrained[half:])}
    for side, (one, other) in sides.items():
        if min(len(one), len(other)) >= FEWEST:
            numbers = {"side": side, "n_unlearned": len(one), "n_retrained": len(other)}
            yield from ({**numbers, **row} for row in _rows(one, other))


def _rows(unlearned: np.ndarray, retrained: np.ndarray) -> Iterator[dict]:
    def distance(one: np.ndarray, other: np.ndarray) -> float:
        return abs(one.mean() - other.mean())

    _, p = permutation_null(unlearned, retrained, distance)
    difference = unlearned.mean() - retrained.mean()
    yield {"statistic": "mean_difference", "value": difference, "p_value": p}
    errors, models = joint_attack(unlearned, retrained)
    p = joint_p(unlearned, retrained)
    yield {"statistic": "joint_errors", "value": errors / models, "p_value": p}
    above = epsilon_lower_bound(unlearned, retrained) > 0
    most = float(bound_of_errors(0, 0, len(unlearned), len(retrained)))
    yield {"statistic": "epsilon_bound", "value": above.mean(), "attainable": most}
