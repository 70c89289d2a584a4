"""Languages: probabilistic context-free grammars, their strings and the strings' probabilities.

Importing this package is cheap (numpy only), because Snakemake reads grammars while it builds its
graph of jobs; the compiled sampler and parser are loaded when they are first used.
"""

from palimpsest.languages.encoding import EncodedStrings
from palimpsest.languages.errors import GrammarError, GrammarWarning
from palimpsest.languages.grammar import Grammar

__all__ = ["EncodedStrings", "Grammar", "GrammarError", "GrammarWarning"]
