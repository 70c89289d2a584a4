# Inputs and parameters of the rules of languages and datasets.
from palimpsest.sections import INTERVENTIONS
from palimpsest.datasets.interventions import DEDUP, DEDUP_MATCHED
from palimpsest.interventions import BASE, maker


def counterpart(wildcards):
    """The file of the language's high-entropy counterpart."""
    return settings.corpus_file(settings.counterpart(wildcards.language))


def of_records(key):
    """A function that gives a key of records that the configuration names, as `of_text` does."""

    def value(wildcards):
        return getattr(named_by_user(settings.records, wildcards.language, "corpora"), key)

    return value


def files_of_records(wildcards):
    """The files in a folder of records; a change of one of them counts."""
    return files_in(of_records("file")(wildcards))


def making(variants, split=lookup("datasets/split", within=config)):
    """The parameters of a rule that makes the datasets of some variants."""
    makers = {variant: maker(INTERVENTIONS, variant) for variant in variants}

    def wanted(wildcards, output):
        named = [paths.values_in(paths.DATASET, path) for path in output]
        found = [(values["variant"], int(values["size"])) for values in named]
        return [{"variant": v, "size": n, "made_by": makers[v]} for v, n in found]

    return {
        **made_by("palimpsest.datasets.build:datasets", *dict.fromkeys(makers.values())),
        "wanted": wanted,
        "test_size": lookup("datasets/test_size", within=config),
        "predict_end": lookup("datasets/predict_end", within=config),
        "split": split,
    }
