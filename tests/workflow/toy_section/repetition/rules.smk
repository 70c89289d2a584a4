# How often training strings are repeated.
from palimpsest.repetition import section as repetition
from palimpsest.repetition.counting import REPEATED


rule repetition:
    input:
        delivered("repetition"),
    localrule: True


rule count_repeated:
    input:
        datasets=of_language(repetition.datasets),
    output:
        table=REPEATED.path,
    log:
        "logs/count_repeated/{language}.log",
    benchmark:
        "benchmarks/count_repeated/{language}.tsv"
    conda:
        ANALYSIS
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        **made_by("palimpsest.repetition.counting:repeated"),
    script:
        MAKE
