# Unlearning. Like training, unlearning reruns when data, models or methods change, but not when
# code changes.
include: "functions/unlearning.smk"


rule unlearning:
    input:
        delivered("unlearning"),
    localrule: True


rule dataset_forgetting:
    input:
        corpus=corpus,
        forget=forget_file,
    output:
        strings=with_variants(paths.DATASET, [ORIGINAL, RETAIN]),
    log:
        "logs/dataset_forgetting/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/dataset_forgetting/{language}/n{size}-seed{seed}.tsv"
    priority: 1000
    conda:
        "../../envs/languages.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        # Unlearning needs no stand-ins, so its training strings are independent.
        **making([ORIGINAL, RETAIN], split=INDEPENDENT),
        options=unlearning_values("validation", "groups", "share"),
    script:
        "../scripts/make.py"


# One job applies every method to some models, because a job takes seconds to start. A method whose
# results are right already is not applied again.
rule unlearn:
    input:
        corpus=corpus,
        pretrained=ancient(pretrained_files),
        dataset=ORIGINAL_DATASET,
        weights=weights_to_unlearn,
    output:
        unlearned=unlearned_files("unlearned.parquet"),
        models=unlearned_files("models.parquet"),
        stages=unlearned_files("stages.parquet"),
        manifests=unlearned_files("manifest.json"),
    log:
        "logs/unlearn/{recipe}/{model}/{language}/n{size}-seed{seed}/{first}-{last}.log",
    benchmark:
        "benchmarks/unlearn/{recipe}/{model}/{language}/n{size}-seed{seed}/{first}-{last}.tsv"
    conda:
        "../../envs/training.yaml"
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=unlearning_minutes,
        gpu=training_gpus,
        checkpoint_every=checkpoint_every,
    params:
        **RECIPE,
        script=UNLEARN,
        work=methods_and_models,
        afterwards=after_unlearning,
    shell:
        MAKE_FORGET


# An unlearned model as a folder that Hugging Face's `from_pretrained` reads. The job unlearns this
# one model again, so that no job above has to keep the weights of thousands of models.
rule export_unlearned_model:
    input:
        corpus=corpus,
        dataset=ORIGINAL_DATASET,
        pretrained=ancient(pretrained_files),
        weights=weights_to_export,
    output:
        folder=directory(forgotten.MODEL_FOLDER),
    log:
        "logs/export_unlearned_model/{recipe}/{model}/{language}/n{size}-seed{seed}/{method}-{origin}.log",
    benchmark:
        "benchmarks/export_unlearned_model/{recipe}/{model}/{language}/n{size}-seed{seed}/{method}-{origin}.tsv"
    wildcard_constraints:
        method=NAME,
        origin=r"\d+",
    conda:
        "../../envs/training.yaml"
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=export_minutes,
        gpu=training_gpus,
        checkpoint_every=checkpoint_every,
    params:
        **RECIPE,
        script=EXPORT,
        wanted=model_to_export,
        cutoff=lookup("unlearning/cutoff", within=config, default=None),
    shell:
        EXPORT_UNLEARNED


rule measure_forgetting:
    input:
        **EVALUATED_FROM,
        manifests=trained_on_variant(RETAIN, paths.REPLICATES_MANIFEST),
        innocent=innocent_traces,
        unlearned=unlearned("unlearned.parquet"),
        models=unlearned("models.parquet"),
    output:
        **{kind.name: kind.path for kind in SCORED},
    log:
        "logs/measure_forgetting/{recipe}/{model}/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/measure_forgetting/{recipe}/{model}/{language}/n{size}-seed{seed}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=evaluation_memory,
        runtime=120,
    params:
        **made_by("palimpsest.unlearning.evaluate.evaluation:forgetting"),
        **SETUPS,
        **SCORING,
    script:
        "../scripts/make.py"


rule measure_other_metrics:
    input:
        **EVALUATED_FROM,
        unlearned=unlearned("unlearned.parquet"),
        models=unlearned("models.parquet"),
    output:
        table=forgotten.METRICS.path,
    log:
        "logs/measure_other_metrics/{recipe}/{model}/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/measure_other_metrics/{recipe}/{model}/{language}/n{size}-seed{seed}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=evaluation_memory,
        runtime=120,
    params:
        **made_by("palimpsest.unlearning.evaluate.evaluation:other_metrics"),
        **SETUPS,
    script:
        "../scripts/make.py"


rule measure_forgotten_memorisation:
    input:
        **EVALUATED_FROM,
        innocent=innocent_traces,
        unlearned=unlearned("unlearned.parquet"),
        models=unlearned("models.parquet"),
    output:
        **{kind.name: kind.path for kind in REMAINING},
    log:
        "logs/measure_forgotten_memorisation/{recipe}/{model}/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/measure_forgotten_memorisation/{recipe}/{model}/{language}/n{size}-seed{seed}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=evaluation_memory,
        runtime=120,
    params:
        **made_by("palimpsest.unlearning.evaluate.evaluation:remaining"),
        **SETUPS,
        loss_threshold=THRESHOLDS["loss_threshold"],
        accuracy_threshold=THRESHOLDS["accuracy_threshold"],
    script:
        "../scripts/make.py"


# The settings of methods, compared on problems of their own. Only this target makes these files.
rule unlearning_tuning:
    input:
        forgotten.TUNING.path,
        forgotten.TUNED,
        list(TUNING_FIGURES.values()),
    localrule: True


rule search_settings:
    input:
        corpus=corpus,
        pretrained=ancient(pretrained_files),
        dataset=ORIGINAL_DATASET,
        weights=weights_to_search_with,
    output:
        searched=searched_files("searched.parquet"),
        manifests=searched_files("manifest.json"),
    log:
        "logs/search_settings/{recipe}/{model}/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/search_settings/{recipe}/{model}/{language}/n{size}-seed{seed}.tsv"
    conda:
        "../../envs/training.yaml"
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=search_minutes,
        gpu=training_gpus,
        checkpoint_every=checkpoint_every,
    params:
        **RECIPE,
        script=SEARCH,
        points=points_to_search,
        n=lookup("unlearning/search/n", within=config, default=None),
        cutoff=lookup("unlearning/cutoff", within=config, default=None),
    shell:
        SEARCH_SETTINGS


rule choose_settings:
    input:
        searched=every_searched_table,
        datasets=datasets_of_search,
        retrained=traces_of_search,
    output:
        table=forgotten.TUNING.path,
        methods=forgotten.TUNED,
    log:
        "logs/choose_settings.log",
    benchmark:
        "benchmarks/choose_settings.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        **made_by("palimpsest.unlearning.tuning.choice:choose"),
        settings=settings_to_search,
        phases=points_to_search,
        cutoff=lookup("unlearning/cutoff", within=config, default=None),
        epochs=SCORING["epochs"],
        batch_size=SCORING["batch_size"],
    script:
        "../scripts/make.py"


rule draw_settings:
    input:
        table=forgotten.TUNING.path,
    output:
        **TUNING_FIGURES,
    log:
        "logs/draw_settings.log",
    benchmark:
        "benchmarks/draw_settings.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        **made_by("palimpsest.unlearning.figures.unlearning_tuning:draw"),
    script:
        "../scripts/make.py"
