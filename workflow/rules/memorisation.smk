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
    log:
        "logs/measure/{model}/{language}/n{size}/{variant}.log",
    benchmark:
        "benchmarks/measure/{model}/{language}/n{size}/{variant}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        start=lookup("memorisation/start", within=config),
        loss_threshold=lookup("memorisation/loss_threshold", within=config),
        accuracy_threshold=lookup("memorisation/accuracy_threshold", within=config),
        code=of_code("memorisation"),
    script:
        "../scripts/measure.py"


rule measure_targets:
    input:
        with_traces=with_seeds(with_targets(TRACE, ["with"])),
        with_datasets=with_seeds(with_targets(DATASET, ["with"])),
        without_traces=with_seeds(with_targets(TRACE, ["without"])),
    output:
        target_scores="results/memorisation/{model}/{language}/n{size}/exact.parquet",
        agreement="results/memorisation/{model}/{language}/n{size}/agreement.parquet",
    log:
        "logs/measure_targets/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/measure_targets/{model}/{language}/n{size}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        start=lookup("memorisation/start", within=config),
        loss_threshold=lookup("memorisation/loss_threshold", within=config),
        accuracy_threshold=lookup("memorisation/accuracy_threshold", within=config),
        code=of_code("memorisation"),
    script:
        "../scripts/measure_targets.py"


rule measure_leave_one_out:
    input:
        traces=with_exact_seeds(TRACE, "base"),
        datasets=with_exact_seeds(DATASET, "base"),
        left_out=with_exact_seeds(TRACE, LEAVE_ONE_OUT),
    output:
        leave_one_out="results/memorisation/{model}/{language}/n{size}/leave_one_out.parquet",
        approximation="results/memorisation/{model}/{language}/n{size}/approximation.parquet",
    log:
        "logs/measure_leave_one_out/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/measure_leave_one_out/{model}/{language}/n{size}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        start=lookup("memorisation/start", within=config),
        code=of_code("memorisation"),
    script:
        "../scripts/measure_leave_one_out.py"


rule study_disagreement:
    input:
        target_scores=target_tables,
    output:
        table="results/studies/disagreement/{language}.parquet",
    log:
        "logs/study_disagreement/{language}.log",
    benchmark:
        "benchmarks/study_disagreement/{language}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        study="disagreement",
        code=of_code("memorisation"),
    script:
        "../scripts/study.py"


use rule study_disagreement as study_exact with:
    input:
        leave_one_out=left_out("leave_one_out"),
        approximation=left_out("approximation"),
    output:
        table="results/studies/exact/{language}.parquet",
    log:
        "logs/study_exact/{language}.log",
    benchmark:
        "benchmarks/study_exact/{language}.tsv"
    params:
        study="exact",
        code=of_code("memorisation"),


use rule study_disagreement as study_tradeoff with:
    input:
        dataset=measured("tradeoff", "dataset"),
        learning=measured("tradeoff", "learning"),
    output:
        table="results/studies/tradeoff/{language}.parquet",
    log:
        "logs/study_tradeoff/{language}.log",
    benchmark:
        "benchmarks/study_tradeoff/{language}.tsv"
    params:
        study="tradeoff",
        code=of_code("memorisation"),


use rule study_disagreement as study_frequency with:
    input:
        starts=measured("frequency", "starts"),
        scores=measured("frequency", "scores"),
        learning=measured("frequency", "learning"),
    output:
        table="results/studies/frequency/{language}.parquet",
    log:
        "logs/study_frequency/{language}.log",
    benchmark:
        "benchmarks/study_frequency/{language}.tsv"
    params:
        study="frequency",
        code=of_code("memorisation"),
        share=lookup("studies/frequency/share", within=config, default=None),


use rule study_disagreement as study_deduplication with:
    input:
        starts=measured("deduplication", "starts"),
        dataset=measured("deduplication", "dataset"),
        learning=measured("deduplication", "learning"),
    output:
        table="results/studies/deduplication/{language}.parquet",
    log:
        "logs/study_deduplication/{language}.log",
    benchmark:
        "benchmarks/study_deduplication/{language}.tsv"
    params:
        study="deduplication",
        code=of_code("memorisation"),


use rule study_disagreement as study_training_size with:
    input:
        starts=measured("training_size", "starts"),
        dataset=measured("training_size", "dataset"),
        learning=measured("training_size", "learning"),
    output:
        table="results/studies/training_size/{language}.parquet",
    log:
        "logs/study_training_size/{language}.log",
    benchmark:
        "benchmarks/study_training_size/{language}.tsv"
    params:
        study="training_size",
        code=of_code("memorisation"),


use rule study_disagreement as study_model_size with:
    input:
        dataset=measured("model_size", "dataset"),
        learning=measured("model_size", "learning"),
        manifests=read_by("model_size", MANIFEST),
    output:
        table="results/studies/model_size/{language}.parquet",
    log:
        "logs/study_model_size/{language}.log",
    benchmark:
        "benchmarks/study_model_size/{language}.tsv"
    params:
        study="model_size",
        families=families,
        code=of_code("memorisation"),


rule claims:
    input:
        studies=of_studies(study_tables),
        agreement=with_targets_measured("agreement"),
        approximation=with_strings_left_out("approximation"),
    output:
        table="results/claims.parquet",
    log:
        "logs/claims.log",
    benchmark:
        "benchmarks/claims.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        code=of_code("memorisation"),
    script:
        "../scripts/claims.py"
