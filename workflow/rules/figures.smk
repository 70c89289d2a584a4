def language_figures():
    """A figure of every language."""
    return with_png(expand("results/figures/language-{language}.svg", language=study.all_languages))


def study_figures():
    """A figure of every study and language."""
    return [path for name in study.studies() for path in figures_of(name)]


def figures_of(name):
    """A study's figures, one per language."""
    return with_png(expand("results/figures/{study}-{language}.svg", study=name, language=study.study_languages(name)))


def study_outputs(name):
    """A study's tables and figures; none if the configuration leaves it out."""
    return [*tables_of(name), *figures_of(name)] if name in study.studies() else []


def with_png(figures):
    """Each figure, and its picture beside it."""
    return [path for svg in figures for path in (svg, svg.removesuffix("svg") + "png")]


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
