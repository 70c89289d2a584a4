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
        with_variants(paths.DATASET, [ORIGINAL, RETAIN]),
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
        "../scripts/dataset.py"


rule unlearn:
    input:
        corpus=corpus,
        dataset=ORIGINAL_DATASET,
        weights=weights_to_unlearn,
    output:
        unlearned=update(forgotten.UNLEARNED.path),
        models=update(forgotten.UNLEARNED_MODELS.path),
        manifest=update(f"{forgotten.UNLEARNED_FOLDER}/manifest.json"),
    log:
        "logs/unlearn/{model}/{language}/n{size}-seed{seed}/{method}/{first}-{last}.log",
    benchmark:
        "benchmarks/unlearn/{model}/{language}/n{size}-seed{seed}/{method}/{first}-{last}.tsv"
    wildcard_constraints:
        method=METHOD_OR_POINT,
    conda:
        "../../envs/training.yaml"
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=unlearning_minutes,
        gpu=training_gpus,
        checkpoint_every=CHECKPOINT_EVERY,
    params:
        **{**RECIPE, "recipe": unlearning_recipe},
        script=UNLEARN,
        phases=phases,
        variant=variant_to_start_from,
        starts=starts,
        origins=origins,
        draws=unlearning_numbers,
        relearn_models=lookup("unlearning/relearn/models", within=config, default=None),
        relearn_epochs=lookup("unlearning/relearn/epochs", within=config, default=None),
    shell:
        MAKE_FORGET


rule measure_forgetting:
    input:
        **EVALUATED_FROM,
        unlearned=unlearned_by("methods", "unlearned.parquet"),
        models=unlearned_by("methods", "models.parquet"),
    output:
        **{kind.name: kind.path for kind in SCORED},
    log:
        "logs/measure_forgetting/{model}/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/measure_forgetting/{model}/{language}/n{size}-seed{seed}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=evaluation_memory,
        runtime=120,
    params:
        **SETUPS,
        **SCORING,
        code=of_code("unlearning_scores.py"),
    script:
        "../scripts/unlearning_scores.py"


rule measure_other_metrics:
    input:
        **EVALUATED_FROM,
        unlearned=unlearned_by("methods", "unlearned.parquet"),
        models=unlearned_by("methods", "models.parquet"),
    output:
        table=forgotten.METRICS.path,
    log:
        "logs/measure_other_metrics/{model}/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/measure_other_metrics/{model}/{language}/n{size}-seed{seed}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=evaluation_memory,
        runtime=120,
    params:
        **SETUPS,
        relearn_epochs=lookup("unlearning/relearn/epochs", within=config, default=None),
        code=of_code("unlearning_metrics.py"),
    script:
        "../scripts/unlearning_metrics.py"


rule measure_forgotten_memorisation:
    input:
        **EVALUATED_FROM,
        unlearned=unlearned_by("methods", "unlearned.parquet"),
        models=unlearned_by("methods", "models.parquet"),
    output:
        table=forgotten.MEMORISATION.path,
    log:
        "logs/measure_forgotten_memorisation/{model}/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/measure_forgotten_memorisation/{model}/{language}/n{size}-seed{seed}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=evaluation_memory,
        runtime=120,
    params:
        **SETUPS,
        loss_threshold=lookup("memorisation/loss_threshold", within=config, default=None),
        accuracy_threshold=lookup("memorisation/accuracy_threshold", within=config, default=None),
        code=of_code("unlearning_memorisation.py"),
    script:
        "../scripts/unlearning_memorisation.py"


rule measure_grid_points:
    input:
        **EVALUATED_FROM,
        unlearned=unlearned_by("points", "unlearned.parquet"),
        models=unlearned_by("points", "models.parquet"),
    output:
        table=forgotten.TUNING.path,
    log:
        "logs/measure_grid_points/{model}/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/measure_grid_points/{model}/{language}/n{size}-seed{seed}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=evaluation_memory,
        runtime=120,
    params:
        **SETUPS,
        **SCORING,
        points=grid_points,
        code=of_code("unlearning_tuning.py"),
    script:
        "../scripts/unlearning_tuning.py"
