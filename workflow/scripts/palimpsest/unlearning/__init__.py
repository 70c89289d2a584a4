"""Unlearning: how far unlearned models can be told from models retrained without the forget set."""

from palimpsest.lazy_import import lazy_names

MODULES = {"epsilon": "thresholds", "forgetting_quality": "quality"}
__all__ = list(MODULES)
__getattr__ = lazy_names(__name__, MODULES)
