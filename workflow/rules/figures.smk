rule figure_language:
    input:
        sample="results/languages/{language}/sample.parquet",
        summary="results/languages/{language}/summary.json",
    output:
        svg="results/figures/language-{language}.svg",
        png="results/figures/language-{language}.png",
    log:
        "logs/figure/language-{language}.log",
    benchmark:
        "benchmarks/figure/language-{language}.tsv"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    conda:
        "../../envs/figures.yaml"
    script:
        "../scripts/figure_language.py"


rule figure:
    input:
        table="results/studies/{study}/{language}.parquet",
    output:
        svg="results/figures/{study}-{language}.svg",
        png="results/figures/{study}-{language}.png",
    log:
        "logs/figure/{study}-{language}.log",
    benchmark:
        "benchmarks/figure/{study}-{language}.tsv"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    conda:
        "../../envs/figures.yaml"
    script:
        "../scripts/figure.py"
