# What the rules of repetition take.
from palimpsest.repetition.kinds import REPEATED
from palimpsest.repetition.section import runs


def training_sets(wildcards):
    """The datasets of a language, one for each seed."""
    return [path for one in runs(settings, wildcards.language) for path in one.paths(paths.DATASET)]
