"""Unlearning: how well an attacker can tell unlearned from retrained models.

Retrained models are trained without the forget set.
"""

from palimpsest.lazy_import import lazy_names

MODULES = {"epsilon": "thresholds", "forgetting_quality": "quality"}
__all__ = list(MODULES)
__getattr__ = lazy_names(__name__, MODULES)
