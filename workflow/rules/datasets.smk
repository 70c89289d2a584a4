rule dataset:
    input:
        grammar=grammar,
    output:
        with_variants(DATASET, ["base", "dedup"]),
    log:
        "logs/dataset/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/dataset/{language}/n{size}-seed{seed}.tsv"
    priority: 1000
    conda:
        "../../envs/languages.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        test_size=lookup("datasets/test_size", within=config),
        predict_end=lookup("datasets/predict_end", within=config),
        code=of_code("languages", "datasets"),
    script:
        "../scripts/dataset.py"


use rule dataset as dataset_matched with:
    input:
        grammar=grammar,
        counterpart=counterpart,
    output:
        with_variants(DATASET, ["dedup-matched"]),
    log:
        "logs/dataset_matched/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/dataset_matched/{language}/n{size}-seed{seed}.tsv"


use rule dataset as dataset_targets with:
    input:
        grammar=grammar,
        targets="results/languages/{language}/targets.parquet",
    output:
        with_targets(DATASET),
    log:
        "logs/dataset_targets/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/dataset_targets/{language}/n{size}-seed{seed}.tsv"
