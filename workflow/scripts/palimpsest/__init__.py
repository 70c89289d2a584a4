"""Palimpsest: what a language model memorised, what it learned, what it can forget.

    languages     grammars whose probabilities are known: strings, exact probabilities, best losses
    memorisation  recollection, contextual and counterfactual memorisation of every string
    records       records and losses of your own: which are memorised, and the false alarms
    profiles      the effect of training on a string over time (difference-in-differences)
    density       how much of the training data is near a string
    information   entropy and mutual information of neurons
    unlearning    whether unlearned models can be told from retrained ones
    audit         membership, canaries, extraction, private information
    datasets      the datasets and languages of the workflow, in other formats

`help(palimpsest.records)` has more; docs/library.md shows every function. All other modules are
parts of the workflow.
"""

from importlib import import_module

from palimpsest.extensions import lay_over

__version__ = "0.1.0"
__all__ = [
    *("languages", "memorisation", "records", "profiles", "density"),
    *("information", "unlearning", "audit", "datasets"),
]

lay_over()


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return import_module(f"{__name__}.{name}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
