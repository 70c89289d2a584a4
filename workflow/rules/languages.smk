rule language:
    input:
        grammar=grammar,
    output:
        sample="results/languages/{language}/sample.parquet",
        targets="results/languages/{language}/targets.parquet",
        summary="results/languages/{language}/summary.json",
    log:
        "logs/language/{language}.log",
    benchmark:
        "benchmarks/language/{language}.tsv"
    # The longest trainings of a small study wait for the last of the datasets.
    priority: 1000
    conda:
        "../../envs/languages.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        sample=lookup("datasets/language_sample", within=config),
        targets=len(study.roles),
        code=of_code("languages", "datasets"),
    script:
        "../scripts/language.py"
