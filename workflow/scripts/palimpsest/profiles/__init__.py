"""Memorisation profiles: the effect of training on strings, estimated from one training run."""

from palimpsest.lazy_import import lazy_names, listing

MODULES = {
    "LossWarning": "estimators",
    "Panel": "panel",
    "by_time_since_treatment": "estimators",
    "difference": "estimators",
    "difference_in_differences": "estimators",
    "read_panel": "panel",
    "to_panel": "panel",
}
__all__ = list(MODULES)
__getattr__ = lazy_names(__name__, MODULES)
__dir__ = listing(__name__, MODULES)
