"""Memorisation: measures on losses, their approximation, the tables, studies and claims."""

from palimpsest.lazy_import import lazy_names, listing

MODULES = {
    "Memorisation": "measures",
    "bayes": "measures",
    "contextual": "measures",
    "counterfactual": "measures",
    "lemma_assumption_broken": "measures",
    "recollection": "measures",
    "StandIns": "approximation",
    "beyond_false_alarms": "palimpsest.statistics",
    "loss_of_others": "approximation",
    "stand_ins": "approximation",
    "memorisation_tables": "runs",
    "target_tables": "targets",
    "leave_one_out_tables": "leave_one_out",
    "extraction_probability": "extraction",
    "memorised_bits": "bits",
}
__all__ = list(MODULES)
__getattr__ = lazy_names(__name__, MODULES)
__dir__ = listing(__name__, MODULES)
