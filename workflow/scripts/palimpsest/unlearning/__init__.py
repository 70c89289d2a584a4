"""Unlearning: how well an attacker can tell unlearned from retrained models.

Retrained models are trained without the forget set.
"""

from palimpsest.lazy_import import lazy_names, listing

MODULES = {
    "epsilon": "attacks.thresholds",
    "epsilon_lower_bound": "attacks.lower_bounds",
    "forgetting_quality": "attacks.quality",
    "joint_attack": "attacks.joint_attacks",
    "logit_scaled_confidence": "attacks.confidence",
    "permutation_null": "attacks.permutation",
    "pooled_share": "evaluate.gaps",
}
__all__ = list(MODULES)
__getattr__ = lazy_names(__name__, MODULES)
__dir__ = listing(__name__, MODULES)
