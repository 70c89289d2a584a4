rule measure:
    input:
        traces=with_seeds(TRACE),
        datasets=with_seeds(DATASET),
    output:
        starts="results/memorisation/{model}/{language}/n{size}/{variant}/starts.parquet",
        scores="results/memorisation/{model}/{language}/n{size}/{variant}/scores.parquet",
        dataset="results/memorisation/{model}/{language}/n{size}/{variant}/dataset.parquet",
        learning="results/memorisation/{model}/{language}/n{size}/{variant}/learning.parquet",
        averages="results/memorisation/{model}/{language}/n{size}/{variant}/averages.parquet",
    params:
        start=lookup("memorisation/start", within=config),
        loss_threshold=lookup("memorisation/loss_threshold", within=config),
        accuracy_threshold=lookup("memorisation/accuracy_threshold", within=config),
        code=of_code("memorisation"),
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
        with_traces=with_seeds(with_targets(TRACE, ["with"])),
        with_datasets=with_seeds(with_targets(DATASET, ["with"])),
        without_traces=with_seeds(with_targets(TRACE, ["without"])),
    output:
        exact="results/memorisation/{model}/{language}/n{size}/exact.parquet",
        agreement="results/memorisation/{model}/{language}/n{size}/agreement.parquet",
    params:
        start=lookup("memorisation/start", within=config),
        loss_threshold=lookup("memorisation/loss_threshold", within=config),
        accuracy_threshold=lookup("memorisation/accuracy_threshold", within=config),
        code=of_code("memorisation"),
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
        code=of_code("memorisation"),
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
        code=of_code("memorisation"),
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
        code=of_code("memorisation"),
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
        code=of_code("memorisation"),
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
        code=of_code("memorisation"),
    log:
        "logs/study_training_size/{language}.log",
    benchmark:
        "benchmarks/study_training_size/{language}.tsv"


use rule study_disagreement as study_model_size with:
    input:
        dataset=measured("model_size", "dataset"),
        learning=measured("model_size", "learning"),
        manifests=read_by("model_size", MANIFEST),
    output:
        table="results/studies/model_size/{language}.parquet",
    params:
        study="model_size",
        code=of_code("memorisation"),
    log:
        "logs/study_model_size/{language}.log",
    benchmark:
        "benchmarks/study_model_size/{language}.tsv"


rule claims:
    input:
        studies=of_studies(study_tables),
        agreement=of_groups(EXACT, exact_groups(), table="agreement"),
    output:
        table="results/claims.parquet",
    params:
        code=of_code("memorisation"),
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
