# What the rules of repetition take.
from palimpsest.repetition import section as repetition
from palimpsest.repetition.kinds import REPEATED


def repetition_datasets(wildcards):
    """The datasets of a language, one for each seed."""
    asked = repetition.runs(settings, wildcards.language)
    return [path for runs in asked for path in runs.paths(paths.DATASET)]
