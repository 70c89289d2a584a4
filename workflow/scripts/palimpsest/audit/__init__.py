"""The audit: was a text in a model's training data, and can it be extracted?"""

from palimpsest.lazy_import import lazy_names

MODULES = {
    "ATTACKS": "attacks",
    "auc": "roc_curves",
    "continued": "continuations",
    "cut": "continuations",
    "Given": "attacks",
    "masked": "private",
    "Pass": "passes",
    "passed": "measuring",
    "roc": "roc_curves",
    "secrets": "private",
    "statistics": "roc_curves",
    "tpr_at": "roc_curves",
}
__all__ = list(MODULES)
__getattr__ = lazy_names(__name__, MODULES)
