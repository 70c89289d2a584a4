# Which records of a user's own are memorised. In paths, `language` is the name of a corpus or of a
# table of losses.
include: "functions/records.smk"


rule records:
    input:
        asked_of_records,
    localrule: True


use rule dataset as dataset_records with:
    output:
        strings=with_variants(paths.DATASET, [ALL_RECORDS, *RECORDS_WITHOUT]),
    log:
        "logs/dataset_records/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/dataset_records/{language}/n{size}-seed{seed}.tsv"
    params:
        **making([ALL_RECORDS, *RECORDS_WITHOUT], split=INDEPENDENT),
        options=values_of("records", "holdout"),


rule retrained_losses:
    input:
        corpus=corpus,
        whole=of_whole_records,
        without=of_records_without,
    output:
        table=recorded.RETRAINED.path,
    log:
        "logs/retrained_losses/{recipe}/{model}/{language}.log",
    benchmark:
        "benchmarks/retrained_losses/{recipe}/{model}/{language}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.records.folds:retrained_losses"),
        **values_of("records", "holdout", "folds", "retrained"),
    script:
        "../scripts/make.py"


rule measure_records:
    input:
        corpus=corpus,
        models=local_checkpoint_files,
        pretrained=ancient(made_checkpoint_files),
    output:
        table=recorded.MEASURED.path,
    log:
        "logs/measure_records/{language}/{model}.log",
    benchmark:
        "benchmarks/measure_records/{language}/{model}.tsv"
    conda:
        "../../envs/training.yaml"
    threads: asking_threads
    resources:
        mem_mb=16000,
        runtime=600,
        gpu=gpus_of_checkpoints,
    params:
        asked=how_to_measure,
        script=MEASURE_RECORDS_SCRIPT,
    shell:
        MEASURE_RECORDS


rule answer_records:
    input:
        retrained=retrained_of_records,
        measured=measured_of_records,
        given=given_of_records,
        corpus=corpus_of_answers,
    output:
        **{kind.name: kind.path for kind in (recorded.ANSWERS, recorded.SHARES)},
    log:
        "logs/answer_records/{language}.log",
    benchmark:
        "benchmarks/answer_records/{language}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.records.tables:answer"),
        **values_of("records", "start", "loss_threshold", "false_alarms"),
        columns=columns_of_losses,
    script:
        "../scripts/make.py"


rule bound_records:
    input:
        retrained=retrained_of_records,
        given=given_of_records,
    output:
        table=recorded.CONFORMAL.path,
    log:
        "logs/bound_records/{language}.log",
    benchmark:
        "benchmarks/bound_records/{language}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.records.tables:bounds"),
        **values_of("records", "false_alarms"),
        columns=columns_of_losses,
    script:
        "../scripts/make.py"


rule all_answers:
    input:
        answers=answers_of_all_records,
    output:
        table=recorded.RECORDS.path,
        csv=recorded.AS_CSV,
    log:
        "logs/all_answers.log",
    benchmark:
        "benchmarks/all_answers.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=10,
    params:
        **made_by("palimpsest.records.tables:all_answers"),
    script:
        "../scripts/make.py"
