# What the rules of languages and datasets take.


def counterpart(wildcards):
    """The grammar file of the language's high-entropy counterpart."""
    return settings.grammar_file(settings.counterpart(wildcards.language))
