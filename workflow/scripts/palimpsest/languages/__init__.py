"""Languages: probabilistic context-free grammars, their strings and the strings' probabilities.

This package is fast to import (only numpy), because Snakemake reads grammars before it builds its
graph of jobs. The compiled sampler and parser are loaded on first use.
"""

from palimpsest.languages.encoding import EncodedStrings
from palimpsest.languages.errors import GrammarError, GrammarWarning
from palimpsest.languages.exposures import Candidates, Exposure, candidates, exposure
from palimpsest.languages.fields import field_losses
from palimpsest.languages.grammar import Grammar
from palimpsest.languages.shipped import load
from palimpsest.lazy_import import listing

__all__ = [
    "Candidates",
    "EncodedStrings",
    "Exposure",
    "Grammar",
    "GrammarError",
    "GrammarWarning",
    "candidates",
    "exposure",
    "field_losses",
    "load",
]

__dir__ = listing(__name__, __all__)
