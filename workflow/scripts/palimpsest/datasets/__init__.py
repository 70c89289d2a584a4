"""Datasets: a training multiset, a test set, and the variants of the training multiset."""

from palimpsest.lazy_import import lazy_names, listing

MODULES = {"build": "build", "string_id": "strings", "target_strings": "strings"}
__all__ = list(MODULES)
__getattr__ = lazy_names(__name__, MODULES)
__dir__ = listing(__name__, MODULES)
