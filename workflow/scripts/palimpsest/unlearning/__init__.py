"""Unlearning: how well an attacker can tell unlearned from retrained models.

Retrained models are trained without the forget set.
"""

from palimpsest.lazy_import import lazy_names

MODULES = {
    "epsilon": "thresholds",
    "epsilon_lower_bound": "lower_bounds",
    "forgetting_quality": "quality",
    "joint_attack": "joint_attacks",
    "permutation_null": "permutation",
}
__all__ = list(MODULES)
__getattr__ = lazy_names(__name__, MODULES)
