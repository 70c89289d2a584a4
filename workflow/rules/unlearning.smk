# Trainings and unlearnings rerun when data, models or methods change, not when code does.
rule dataset_forgetting:
    input:
        grammar=grammar,
        forget=forget_file,
    output:
        with_variants(DATASET, [ORIGINAL, RETAIN]),
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
        test_size=lookup("datasets/test_size", within=config),
        predict_end=lookup("datasets/predict_end", within=config),
        validation=lookup("unlearning/validation", within=config, default=None),
        groups=lookup("unlearning/groups", within=config, default=None),
        share=lookup("unlearning/share", within=config, default=None),
        code=of_code("languages", "datasets"),
    script:
        "../scripts/dataset_forgetting.py"


rule train_draws:
    input:
        grammar=grammar,
        dataset=DATASET,
    output:
        trace=update(f"{PROBLEM}/{{variant}}/draws-{{first}}-{{last}}/trace.parquet"),
        manifest=update(f"{PROBLEM}/{{variant}}/draws-{{first}}-{{last}}/manifest.json"),
        weights=update(f"{PROBLEM}/{{variant}}/draws-{{first}}-{{last}}/weights.safetensors"),
    log:
        "logs/train_draws/{model}/{language}/n{size}-seed{seed}/{variant}/{first}-{last}.log",
    benchmark:
        "benchmarks/train_draws/{model}/{language}/n{size}-seed{seed}/{variant}/{first}-{last}.tsv"
    wildcard_constraints:
        variant=f"{ORIGINAL}|{RETAIN}",
    # All unlearning waits for them.
    priority: 500
    conda:
        "../../envs/training.yaml"
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=draws_minutes,
        gpu=training_gpus,
        checkpoint_every=CHECKPOINT_EVERY,
    params:
        **{**RECIPE, "recipe": draws_recipe},
        script=FINETUNE,
    shell:
        train_command(weights=True, more=" --draws {wildcards.first} {wildcards.last}")


rule unlearn:
    input:
        grammar=grammar,
        dataset=DATASET.replace("{variant}", ORIGINAL),
        weights=weights_to_unlearn,
    output:
        unlearned=update(
            f"{PROBLEM}/unlearned/{{method}}/runs-{{first}}-{{last}}/unlearned.parquet"
        ),
        models=update(f"{PROBLEM}/unlearned/{{method}}/runs-{{first}}-{{last}}/models.parquet"),
        manifest=update(f"{PROBLEM}/unlearned/{{method}}/runs-{{first}}-{{last}}/manifest.json"),
    log:
        "logs/unlearn/{model}/{language}/n{size}-seed{seed}/{method}/{first}-{last}.log",
    benchmark:
        "benchmarks/unlearn/{model}/{language}/n{size}-seed{seed}/{method}/{first}-{last}.tsv"
    conda:
        "../../envs/training.yaml"
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=draws_minutes,
        gpu=training_gpus,
        checkpoint_every=CHECKPOINT_EVERY,
    params:
        **{**RECIPE, "recipe": draws_recipe},
        script=UNLEARN,
        phases=phases,
        variant=variant_to_start_from,
        starts=starts,
        origins=origins,
        draws=unlearning_draws,
        relearn_models=lookup("unlearning/relearn/models", within=config, default=None),
        relearn_epochs=lookup("unlearning/relearn/epochs", within=config, default=None),
    shell:
        MAKE_FORGET


rule measure_forgetting:
    input:
        **EVALUATED_FROM,
        unlearned=unlearned_by(unlearning_methods, "unlearned.parquet"),
        models=unlearned_by(unlearning_methods, "models.parquet"),
    output:
        **{table: f"{PROBLEM}/{table}.parquet" for table in SCORED_TABLES},
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
        code=of_code("unlearning"),
    script:
        "../scripts/unlearning_scores.py"


rule measure_other_metrics:
    input:
        **EVALUATED_FROM,
        unlearned=unlearned_by(unlearning_methods, "unlearned.parquet"),
        models=unlearned_by(unlearning_methods, "models.parquet"),
    output:
        table=f"{PROBLEM}/metrics.parquet",
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
        code=of_code("unlearning"),
    script:
        "../scripts/unlearning_metrics.py"


rule measure_forgotten_memorisation:
    input:
        **EVALUATED_FROM,
        unlearned=unlearned_by(unlearning_methods, "unlearned.parquet"),
        models=unlearned_by(unlearning_methods, "models.parquet"),
    output:
        table=f"{PROBLEM}/memorisation.parquet",
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
        loss_threshold=lookup("memorisation/loss_threshold", within=config),
        accuracy_threshold=lookup("memorisation/accuracy_threshold", within=config),
        code=of_code("memorisation", "unlearning"),
    script:
        "../scripts/unlearning_memorisation.py"


rule measure_grid_points:
    input:
        **EVALUATED_FROM,
        unlearned=unlearned_by(unlearning_points, "unlearned.parquet"),
        models=unlearned_by(unlearning_points, "models.parquet"),
    output:
        table=f"{PROBLEM}/tuning.parquet",
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
        code=of_code("unlearning"),
    script:
        "../scripts/unlearning_tuning.py"
