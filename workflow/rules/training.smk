# Training reruns when data, model or recipe change, not when code does: an edited comment must not
# retrain a large model. Each manifest records the code's revision. Traces that are still right are
# kept (`update`): the command looks whether they are of this very model, recipe and data. How often
# a run is saved decides no result, so it is a resource: a changed parameter would rerun the rule.
include: "functions/training.smk"


rule finetune:
    input:
        trained_files(experiment.single_runs, TRAINED.values()),
        trained_files(experiment.replicates, REPLICATES.values()),
    localrule: True


rule train_full:
    input:
        grammar=grammar,
        dataset=paths.DATASET,
    output:
        **trained(one_run),
    log:
        "logs/train/{model}/{language}/n{size}-seed{seed}/{variant}.log",
    benchmark:
        "benchmarks/train/{model}/{language}/n{size}-seed{seed}/{variant}.tsv"
    wildcard_constraints:
        model=f"{NAME}(?<!-twin)",
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
# choice of variants that is asked for.
for name, variants in twin_rules(experiment.twin_jobs).items():

    rule:
        name:
            name
        input:
            grammar=grammar,
            dataset=trained_on(variants),
        output:
            **trained(all_runs(variants)),
        log:
            "logs/train/{model}/{language}/n{size}.log",
        benchmark:
            "benchmarks/train/{model}/{language}/n{size}.tsv"
        wildcard_constraints:
            model=any_of(experiment.twin_jobs[variants]),
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


# A twin that no section asks for is a target all the same.
use rule train_full as train_twins_of_one_variant with:
    input:
        grammar=grammar,
        dataset=with_seeds(paths.DATASET),
    output:
        **trained(with_seeds),
    log:
        "logs/train/{model}/{language}/n{size}/{variant}.log",
    benchmark:
        "benchmarks/train/{model}/{language}/n{size}/{variant}.tsv"
    wildcard_constraints:
        model=none_of(experiment.single_runs),
        variant=r"(?!leave-one-out).*",
    resources:
        mem_mb=training_memory,
        runtime=one_variant_minutes,
        gpu=training_gpus,
        checkpoint_every=CHECKPOINT_EVERY,


rule train_replicates:
    input:
        grammar=grammar,
        dataset=paths.DATASET,
    output:
        **{name: update(pattern) for name, pattern in REPLICATES.items()},
    log:
        "logs/train_replicates/{model}/{language}/n{size}-seed{seed}/{variant}/{first}-{last}.log",
    benchmark:
        "benchmarks/train_replicates/{model}/{language}/n{size}-seed{seed}/{variant}/{first}-{last}.tsv"
    # All that is made of them waits for them.
    priority: 500
    conda:
        "../../envs/training.yaml"
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=replicates_minutes,
        gpu=training_gpus,
        checkpoint_every=CHECKPOINT_EVERY,
    params:
        **{**RECIPE, "recipe": replicates_recipe},
        script=FINETUNE,
    shell:
        train_command(weights=True, more=" --draws {wildcards.first} {wildcards.last}")
