# How often training strings are repeated.
include: "functions/repetition.smk"


rule repetition:
    input:
        delivered("repetition"),
    localrule: True


rule count_repeated:
    input:
        datasets=repetition_datasets,
    output:
        table=REPEATED.path,
    log:
        "logs/count_repeated/{language}.log",
    benchmark:
        "benchmarks/count_repeated/{language}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        **made_by("palimpsest.repetition.counting:repeated"),
    script:
        "../scripts/make.py"
