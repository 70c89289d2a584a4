rule figure:
    input:
        table=drawn_from,
    output:
        svg="results/figures/{figure}-{language}.svg",
        png="results/figures/{figure}-{language}.png",
    log:
        "logs/figure/{figure}-{language}.log",
    benchmark:
        "benchmarks/figure/{figure}-{language}.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        figure="{figure}",
        code=of_code("figures"),
    script:
        "../scripts/figure.py"


use rule figure as figure_language with:
    input:
        table="results/languages/{language}/sample.parquet",
        summary="results/languages/{language}/summary.json",
    output:
        svg="results/figures/language-{language}.svg",
        png="results/figures/language-{language}.png",
    log:
        "logs/figure/language-{language}.log",
    benchmark:
        "benchmarks/figure/language-{language}.tsv"
    params:
        figure="language",
        code=of_code("figures"),


use rule figure as figure_unlearning with:
    input:
        unpack(drawn_from_unlearning),
    output:
        svg="results/figures/{figure}-{language}.svg",
        png="results/figures/{figure}-{language}.png",
    log:
        "logs/figure_unlearning/{figure}-{language}.log",
    benchmark:
        "benchmarks/figure_unlearning/{figure}-{language}.tsv"
    wildcard_constraints:
        figure="|".join(UNLEARNING_FIGURES),
