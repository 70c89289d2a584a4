def all_memorisation_tables():
    """Every table of memorisation, of the measured groups and of exact retraining."""
    measured = of_groups(GROUP + "/{variant}/{table}.parquet", study.measured_groups, table=MEASURED)
    retrained = [group for language in study.all_languages for group in study.exact_groups(language)]
    return measured + of_groups(GROUP + "/{table}.parquet", retrained, table=EXACT)


def study_tables():
    """Every study's table for every language of the study."""
    return [path for name in study.studies() for path in tables_of(name)]


def tables_of(name):
    """A study's tables, one per language."""
    return expand("results/studies/{study}/{language}.parquet", study=name, language=study.study_languages(name))


def read_by(name, pattern):
    """An input function: the pattern for all the runs that a study reads on a language."""
    return lambda wildcards: of_groups(pattern, study.study_groups(name, wildcards.language))


def measured(name, table):
    """An input function: a table of memorisation of all the runs that a study reads."""
    return read_by(name, f"{GROUP}/{{variant}}/{table}.parquet")


def exact_tables(wildcards):
    """The tables of exact retraining on a language, of all models of the disagreement study."""
    return of_groups(GROUP + "/exact.parquet", study.exact_groups(wildcards.language))


def agreement_tables(wildcards):
    """The tables of how far the cheaper thresholds are from exact retraining."""
    groups = [group for language in study.all_languages for group in study.exact_groups(language)]
    return of_groups(GROUP + "/agreement.parquet", groups)


rule measure:
    input:
        traces=with_seeds(RUN + "/trace.parquet"),
        datasets=with_seeds(DATASET),
    output:
        starts=GROUP + "/{variant}/starts.parquet",
        scores=GROUP + "/{variant}/scores.parquet",
        dataset=GROUP + "/{variant}/dataset.parquet",
        learning=GROUP + "/{variant}/learning.parquet",
    params:
        start=lookup("memorisation/start", within=config),
        loss_threshold=lookup("memorisation/loss_threshold", within=config),
        accuracy_threshold=lookup("memorisation/accuracy_threshold", within=config),
    log:
        "logs/measure/{model}/{language}/n{size}/{variant}.log",
    benchmark:
        "benchmarks/measure/{model}/{language}/n{size}/{variant}.tsv"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    conda:
        "../../envs/analysis.yaml"
    script:
        "../scripts/measure.py"


rule measure_exactly:
    input:
        with_traces=of_targets(RUN + "/trace.parquet", kinds=["with"]),
        with_datasets=of_targets(DATASET, kinds=["with"]),
        without_traces=of_targets(RUN + "/trace.parquet", kinds=["without"]),
    output:
        exact=GROUP + "/exact.parquet",
        agreement=GROUP + "/agreement.parquet",
    params:
        start=lookup("memorisation/start", within=config),
        loss_threshold=lookup("memorisation/loss_threshold", within=config),
        accuracy_threshold=lookup("memorisation/accuracy_threshold", within=config),
    log:
        "logs/measure_exactly/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/measure_exactly/{model}/{language}/n{size}.tsv"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    conda:
        "../../envs/analysis.yaml"
    script:
        "../scripts/measure_exactly.py"


rule study_disagreement:
    input:
        exact=exact_tables,
    output:
        table="results/studies/disagreement/{language}.parquet",
    params:
        study="disagreement",
    log:
        "logs/study_disagreement/{language}.log",
    benchmark:
        "benchmarks/study_disagreement/{language}.tsv"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=30,
    conda:
        "../../envs/analysis.yaml"
    script:
        "../scripts/study.py"


use rule study_disagreement as study_tradeoff with:
    input:
        dataset=measured("tradeoff", "dataset"),
        learning=measured("tradeoff", "learning"),
    output:
        table="results/studies/tradeoff/{language}.parquet",
    params:
        study="tradeoff",
    log:
        "logs/study_tradeoff/{language}.log",
    benchmark:
        "benchmarks/study_tradeoff/{language}.tsv"


use rule study_disagreement as study_frequency with:
    input:
        starts=measured("frequency", "starts"),
        scores=measured("frequency", "scores"),
        learning=measured("frequency", "learning"),
    output:
        table="results/studies/frequency/{language}.parquet",
    params:
        study="frequency",
        share=lookup("studies/frequency/share", within=config, default=None),
    log:
        "logs/study_frequency/{language}.log",
    benchmark:
        "benchmarks/study_frequency/{language}.tsv"


use rule study_disagreement as study_deduplication with:
    input:
        starts=measured("deduplication", "starts"),
        dataset=measured("deduplication", "dataset"),
        learning=measured("deduplication", "learning"),
    output:
        table="results/studies/deduplication/{language}.parquet",
    params:
        study="deduplication",
    log:
        "logs/study_deduplication/{language}.log",
    benchmark:
        "benchmarks/study_deduplication/{language}.tsv"


use rule study_disagreement as study_training_size with:
    input:
        starts=measured("training_size", "starts"),
        dataset=measured("training_size", "dataset"),
        learning=measured("training_size", "learning"),
    output:
        table="results/studies/training_size/{language}.parquet",
    params:
        study="training_size",
    log:
        "logs/study_training_size/{language}.log",
    benchmark:
        "benchmarks/study_training_size/{language}.tsv"


use rule study_disagreement as study_model_size with:
    input:
        dataset=measured("model_size", "dataset"),
        learning=measured("model_size", "learning"),
        manifests=read_by("model_size", RUN + "/manifest.json"),
    output:
        table="results/studies/model_size/{language}.parquet",
    params:
        study="model_size",
    log:
        "logs/study_model_size/{language}.log",
    benchmark:
        "benchmarks/study_model_size/{language}.tsv"


rule claims:
    input:
        studies=study_tables(),
        agreement=agreement_tables,
    output:
        table="results/claims.parquet",
    log:
        "logs/claims.log",
    benchmark:
        "benchmarks/claims.tsv"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=30,
    conda:
        "../../envs/analysis.yaml"
    script:
        "../scripts/claims.py"
