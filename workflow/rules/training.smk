# Training reruns when data, model or recipe change, but not when code changes: retraining a large
# model after an edit of the code would cost too much. Each manifest records the code's revision.
# Existing traces are kept (`update`) if they are still right: the command checks whether they
# belong to exactly this model, recipe and data. `checkpoint_every` is a resource and not a
# parameter, because a changed parameter would rerun the rule, and saving more often changes no
# result.
include: "functions/training.smk"


rule finetune:
    input:
        trained_files(experiment.single_runs, TRAINED.values()),
        trained_files(keeping(WEIGHTS, experiment.single_runs), [paths.WEIGHTS]),
        trained_files(keeping(TOKENS, experiment.single_runs), [paths.TOKENS]),
        trained_files(keeping(CHECKPOINTS, experiment.single_runs), [paths.CHECKPOINTS]),
        trained_files(experiment.replicates, REPLICATES.values()),
        # For `save_weights: huggingface`
        trained_files(keeping(FOLDER, experiment.single_runs), [paths.MODEL_FOLDER]),
    localrule: True


# One job trains all seeds and variants of a twin (as a fleet, if that is the twin's engine). For a
# full model, one job may train several seeds of one variant. Jobs with equal variants and seeds
# share a rule.
for name, jobs in TRAINING_RULES.items():

    rule:
        name:
            name
        input:
            corpus=corpus,
            pretrained=ancient(pretrained_files),
            dataset=trained_on(jobs[0]),
        output:
            **trained_together(jobs[0]),
        log:
            f"logs/train/{{recipe}}/{{model}}/{{language}}/n{{size}}{named_apart(jobs[0])}.log",
        benchmark:
            f"benchmarks/train/{{recipe}}/{{model}}/{{language}}/n{{size}}{named_apart(jobs[0])}.tsv"
        wildcard_constraints:
            recipe=training_rules.recipes_of(jobs),
        # The longest job of a small experiment starts first.
        priority: len(trained_on(jobs[0]))
        conda:
            "../../envs/training.yaml"
        threads: training_threads
        resources:
            mem_mb=training_memory,
            runtime=minutes_of_all(jobs[0]),
            gpu=training_gpus,
            checkpoint_every=checkpoint_every,
            trackers=TRACKERS,
        params:
            **{**RECIPE, "values": values_of_all(jobs[0])},
            script=FINETUNE,
        shell:
            TRAIN


# A single run of a full model, or a run that no section requests but a user asks Snakemake for.
rule train_one_run:
    input:
        corpus=corpus,
        pretrained=ancient(pretrained_files),
        dataset=dataset_of_one,
    output:
        **trained_alone(),
    log:
        "logs/train/{recipe}/{model}/{language}/n{size}-seed{seed}/{variant}.log",
    benchmark:
        "benchmarks/train/{recipe}/{model}/{language}/n{size}-seed{seed}/{variant}.tsv"
    wildcard_constraints:
        variant=f"(?!{OF_MANY_MODELS})"
        + training_rules.variants_of_others(TRAINING_RULES.values(), NAME),
    conda:
        "../../envs/training.yaml"
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=training_minutes,
        gpu=training_gpus,
        checkpoint_every=checkpoint_every,
        trackers=TRACKERS,
    params:
        **{**RECIPE, "values": values_of_one},
        script=FINETUNE,
    shell:
        TRAIN_ONE


rule train_replicates:
    input:
        corpus=corpus,
        pretrained=ancient(pretrained_files),
        dataset=paths.DATASET,
    output:
        **{name: update(pattern) for name, pattern in REPLICATES.items()},
    log:
        "logs/train_replicates/{recipe}/{model}/{language}/n{size}-seed{seed}/{variant}/{first}-{last}.log",
    benchmark:
        "benchmarks/train_replicates/{recipe}/{model}/{language}/n{size}-seed{seed}/{variant}/{first}-{last}.tsv"
    # Replicates come early, because all unlearning waits for them.
    priority: 500
    conda:
        "../../envs/training.yaml"
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=replicates_minutes,
        gpu=training_gpus,
        checkpoint_every=checkpoint_every,
        trackers=TRACKERS,
    params:
        **RECIPE,
        script=FINETUNE,
    shell:
        train_command(weights=True, more=REPLICATED)


# The weights of a run as a folder that Hugging Face's `from_pretrained` reads. The rule is separate
# from training, so that nothing is trained again when these folders are wanted later.
rule export_model:
    input:
        ancient(pretrained_files),
        weights=paths.WEIGHTS,
        manifest=paths.MANIFEST,
        trace=paths.TRACE,
        strings=dataset_of_one,
    output:
        folder=directory(paths.MODEL_FOLDER),
    log:
        "logs/export_model/{recipe}/{model}/{language}/n{size}-seed{seed}/{variant}.log",
    benchmark:
        "benchmarks/export_model/{recipe}/{model}/{language}/n{size}-seed{seed}/{variant}.tsv"
    wildcard_constraints:
        variant=f"(?!{OF_MANY_MODELS}).*",
    conda:
        "../../envs/training.yaml"
    threads: 1
    resources:
        mem_mb=training_memory,
        runtime=60,
    params:
        model_row,
        **made_by("palimpsest.jobs.export:export_run"),
        models=lookup("models_table", within=config),
    script:
        "../scripts/make.py"
