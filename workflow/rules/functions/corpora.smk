# Inputs and parameters of the rules of languages and datasets.
from palimpsest.sections import VARIANTS
from palimpsest.variants import BASE, DEDUP, DEDUP_MATCHED, maker


def counterpart(wildcards):
    """The file of the language's high-entropy counterpart."""
    return settings.corpus_file(settings.counterpart(wildcards.language))


def making(variants, split=lookup("datasets/split", within=config)):
    """The parameters of a rule that makes the datasets of some variants."""
    made_by = {variant: maker(VARIANTS, variant) for variant in variants}
    return {
        "test_size": lookup("datasets/test_size", within=config),
        "predict_end": lookup("datasets/predict_end", within=config),
        "split": split,
        "made_by": made_by,
        "code": of_code("dataset.py", *dict.fromkeys(made_by.values())),
    }
