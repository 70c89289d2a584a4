# Training reruns when data, model or recipe change, not when code does: an edited comment must not
# retrain a large model. Each manifest records the code's revision. Traces that are still right are
# kept (`update`): the command looks whether they are of this very model, recipe and data. How often
# a run is saved decides no result, so it is a resource: a changed parameter would rerun the rule.
CHECKPOINT_EVERY = config["training"]["checkpoint_every"]
TRAIN = train_command(weights=config["save_weights"])

# All that decides a trace beside its data, value by value: a key that is not here reruns nothing.
RECIPE = dict(
    recipe=recipe,
    predict_end=lookup("datasets/predict_end", within=config),
    models=lookup("models_table", within=config),
    row=model_row,
    engine=engine,
    learning_rate=learning_rate,
)


rule train_full:
    input:
        grammar=grammar,
        dataset=DATASET,
    output:
        **trained(one_run),
    log:
        "logs/train/{model}/{language}/n{size}-seed{seed}/{variant}.log",
    benchmark:
        "benchmarks/train/{model}/{language}/n{size}-seed{seed}/{variant}.tsv"
    wildcard_constraints:
        model=r"[A-Za-z0-9][A-Za-z0-9._-]*(?<!-twin)",
    conda:
        "../../envs/training.yaml"
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=training_minutes,
        gpu=training_gpus,
        checkpoint_every=CHECKPOINT_EVERY,
    params:
        **RECIPE,
        script=FINETUNE,
    shell:
        TRAIN


# All seeds and variants of a twin are one job: a fleet, if that is the engine. One rule for each
# choice of variants that the studies make.
for variants, groups in study.twin_jobs.items():

    rule:
        name:
            f"train_twins_on_{kinds_of(variants)}"
        input:
            grammar=grammar,
            dataset=trained_on(variants),
        output:
            **trained(of_twins(variants)),
        log:
            "logs/train/{model}/{language}/n{size}.log",
        benchmark:
            "benchmarks/train/{model}/{language}/n{size}.tsv"
        wildcard_constraints:
            model=any_of(groups),
        # The longest job of a small study starts first.
        priority: len(trained_on(variants))
        conda:
            "../../envs/training.yaml"
        threads: 1
        resources:
            mem_mb=training_memory,
            runtime=twin_minutes(variants),
            gpu=training_gpus,
            checkpoint_every=CHECKPOINT_EVERY,
        params:
            **RECIPE,
            script=FINETUNE,
        shell:
            TRAIN


# A twin that no study asks for is a target all the same.
use rule train_full as train_twins_of_one_variant with:
    input:
        grammar=grammar,
        dataset=with_seeds(DATASET),
    output:
        **trained(with_seeds),
    log:
        "logs/train/{model}/{language}/n{size}/{variant}.log",
    benchmark:
        "benchmarks/train/{model}/{language}/n{size}/{variant}.tsv"
    wildcard_constraints:
        model=none_of(study.trained_groups),
        variant=r"(?!leave-one-out).*",
    resources:
        mem_mb=training_memory,
        runtime=one_variant_minutes,
        gpu=training_gpus,
        checkpoint_every=CHECKPOINT_EVERY,
