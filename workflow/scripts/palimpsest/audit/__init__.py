"""The audit: was a text in a model's training data, and can it be extracted?"""

from palimpsest.lazy_import import lazy_names, listing

MODULES = {
    "ATTACKS": "membership",
    "attacks": "scoring",
    "auc": "palimpsest.records.roc_curves",
    "calibrated": "optimum",
    "continued": "continuations",
    "exposure": "palimpsest.languages",
    "extractable": "continuations",
    "cut": "continuations",
    "free_generations": "generating",
    "Given": "membership",
    "lira_of_tokens": "optimum",
    "lira_offline": "optimum",
    "lira_online": "optimum",
    "masked": "private",
    "Pass": "passes",
    "one_run_epsilon": "canaries",
    "passed": "measuring",
    "planted": "planting",
    "propensity": "propensities",
    "roc": "palimpsest.records.roc_curves",
    "secrets": "private",
    "statistics": "palimpsest.records.roc_curves",
    "tpr_at": "palimpsest.records.roc_curves",
}
__all__ = list(MODULES)
__getattr__ = lazy_names(__name__, MODULES)
__dir__ = listing(__name__, MODULES)
