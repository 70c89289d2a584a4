def all_datasets():
    """Every dataset that is trained on."""
    return of_groups(DATASET, study.trained_groups)


def counterpart(wildcards):
    """The grammar file of the language's high-entropy counterpart."""
    return study.grammar_file(study.counterpart(wildcards.language))


def dataset_of(variants):
    """The datasets of some variants, for one language, size and seed."""
    return expand(DATASET, variant=variants, allow_missing=True)


rule dataset:
    input:
        grammar=grammar,
    output:
        dataset_of(["base", "dedup"]),
    params:
        test_size=lookup("datasets/test_size", within=config),
        predict_end=lookup("datasets/predict_end", within=config),
    log:
        "logs/dataset/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/dataset/{language}/n{size}-seed{seed}.tsv"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    conda:
        "../../envs/languages.yaml"
    script:
        "../scripts/dataset.py"


use rule dataset as dataset_matched with:
    input:
        grammar=grammar,
        counterpart=counterpart,
    output:
        dataset_of(["dedup-matched"]),
    log:
        "logs/dataset_matched/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/dataset_matched/{language}/n{size}-seed{seed}.tsv"


use rule dataset as dataset_targets with:
    input:
        grammar=grammar,
        targets="results/languages/{language}/targets.parquet",
    output:
        dataset_of([f"{kind}-{role}" for role in study.roles for kind in ["with", "without"]]),
    log:
        "logs/dataset_targets/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/dataset_targets/{language}/n{size}-seed{seed}.tsv"
