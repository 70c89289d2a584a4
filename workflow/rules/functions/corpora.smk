# What the rules of languages and datasets take.
from palimpsest.memorisation.studies import STUDIES


def counterpart(wildcards):
    """The grammar file of the language's high-entropy counterpart."""
    return settings.grammar_file(settings.counterpart(wildcards.language))


def n_targets(wildcards):
    """Target strings of a language; one where no study has any."""
    return (STUDIES["disagreement"].block(settings) or {"targets": 1})["targets"]
