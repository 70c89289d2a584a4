# Memorisation: the measures of every run, and the studies.
include: "functions/memorisation.smk"


rule memorisation:
    input:
        delivered("memorisation"),
    localrule: True


use rule dataset as dataset_targets with:
    input:
        corpus=corpus,
        targets=paths.LANGUAGE_TARGETS,
    output:
        strings=with_variants(paths.DATASET, TARGET_VARIANTS),
    log:
        "logs/dataset_targets/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/dataset_targets/{language}/n{size}-seed{seed}.tsv"
    params:
        **making(TARGET_VARIANTS),


rule measure:
    input:
        traces=with_seeds(paths.TRACE),
        datasets=with_seeds(paths.DATASET),
    output:
        **{kind.name: kind.path for kind in MEASURED},
    log:
        "logs/measure/{recipe}/{model}/{language}/n{size}/{variant}.log",
    benchmark:
        "benchmarks/measure/{recipe}/{model}/{language}/n{size}/{variant}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.memorisation.runs:memorisation_tables"),
        **THRESHOLDS,
    script:
        "../scripts/make.py"


use rule measure as measure_targets with:
    input:
        with_traces=with_seeds(with_variants(paths.TRACE, WITH_TARGETS)),
        with_datasets=with_seeds(with_variants(paths.DATASET, WITH_TARGETS)),
        without_traces=with_seeds(with_variants(paths.TRACE, WITHOUT_TARGETS)),
    output:
        target_scores=memorised.TARGET_SCORES.path,
        agreement=memorised.AGREEMENT.path,
    log:
        "logs/measure_targets/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/measure_targets/{recipe}/{model}/{language}/n{size}.tsv"
    params:
        **made_by("palimpsest.memorisation.targets:target_tables"),


rule measure_leave_one_out:
    input:
        traces=with_exact_seeds(paths.TRACE, "base"),
        datasets=with_exact_seeds(paths.DATASET, "base"),
        left_out=with_exact_seeds(paths.TRACE, LEAVE_ONE_OUT),
        again=trained_again,
    output:
        leave_one_out=memorised.LEAVE_ONE_OUT.path,
        approximation=memorised.APPROXIMATION.path,
    log:
        "logs/measure_leave_one_out/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/measure_leave_one_out/{recipe}/{model}/{language}/n{size}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        **made_by("palimpsest.memorisation.leave_one_out:leave_one_out_tables"),
        start=THRESHOLDS["start"],
        stand_in_gap=THRESHOLDS["stand_in_gap"],
        counterpart=name_of_counterpart,
    script:
        "../scripts/make.py"


if exposure_block:

    rule rank_values_of_fields:
        input:
            corpus=corpus,
            pretrained=ancient(pretrained_files),
            dataset=with_seeds(paths.DATASET),
            weights=with_seeds(paths.WEIGHTS),
        output:
            field_values=with_seeds(memorised.FIELD_VALUES.path),
            manifest=with_seeds(exposure_study.MANIFEST),
        log:
            "logs/rank_values_of_fields/{recipe}/{model}/{language}/n{size}/{variant}.log",
        benchmark:
            "benchmarks/rank_values_of_fields/{recipe}/{model}/{language}/n{size}/{variant}.tsv"
        conda:
            "../../envs/training.yaml"
        threads: training_threads
        resources:
            mem_mb=training_memory,
            runtime=training_minutes,
            gpu=training_gpus,
            checkpoint_every=checkpoint_every,
        params:
            **asking(exposure_study.QUERY, exposure_study.STUDY.values(settings)),
        shell:
            RANK_VALUES


rule study:
    input:
        unpack(study_inputs),
    output:
        table=paths.STUDY_TABLE,
    log:
        "logs/study/{study}-{language}.log",
    benchmark:
        "benchmarks/study/{study}-{language}.tsv"
    wildcard_constraints:
        study="|".join(STUDIES),
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        make=study_table,
        code=study_code,
        parameters=study_parameters,
    script:
        "../scripts/make.py"


# Every study is a target of Snakemake: its tables and its figures.
for name, one in STUDIES.items():

    rule:
        name:
            name
        input:
            one.outputs(settings),
            experiment.figure_files("memorisation", name),
