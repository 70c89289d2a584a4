"""Information measures: how a model's neurons vary, alone and together.

Source: the paper on information measures of neurons, appendices A.1 and A.2.
"""

from palimpsest.lazy_import import lazy_names, listing

MODULES = {
    "Pairs": "kraskov",
    "mutual_information": "kraskov",
    "mutual_information_of_pairs": "kraskov",
    "sampled_pairs": "kraskov",
    "neuron_entropy": "entropy",
    "trimmed_entropy": "entropy",
    "CopiesWarning": "neurons",
    "is_degenerate": "neurons",
}
__all__ = list(MODULES)
__getattr__ = lazy_names(__name__, MODULES)
__dir__ = listing(__name__, MODULES)
