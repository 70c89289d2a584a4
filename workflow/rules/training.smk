# Training reruns when data, model or recipe change, not when code does: an edited comment must not
# retrain a large model. Each manifest records the code's revision. Traces that are still right are
# kept (`update`): the command looks whether they are of this very model, recipe and data. How often
# a run is saved decides no result, so it is a resource: a changed parameter would rerun the rule.
TRAIN = (
    "python {params.script:q} --model {wildcards.model} --models {params.models:q}"
    " --engine {params.engine} --language {input.grammar:q} --dataset {input.dataset}"
    " --trace {output.trace} --manifest {output.manifest}"
    + (" --weights {output.weights}" if config["save_weights"] else "")
    + " --learning-rate {params.learning_rate} --predict-end {params.predict_end}"
    " --state results/.state --threads {threads} --memory-mb {resources.mem_mb} {params.recipe}"
    " --checkpoint-every {resources.checkpoint_every}"
    " > {log} 2>&1 || {{ grep '^error:' {log} >&2 || tail -n 1 {log} >&2; exit 1; }}"
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
    threads: 1
    resources:
        mem_mb=16000,
        runtime=720,
        checkpoint_every=config["training"]["checkpoint_every"],
        gpu=config["training"]["processes"],
    params:
        recipe=flags(config["training"]),
        predict_end=lookup("datasets/predict_end", within=config),
        models=lookup("models_table", within=config),
        row=model_row,
        engine=engine,
        learning_rate=learning_rate,
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
            mem_mb=4000,
            runtime=60,
            checkpoint_every=config["training"]["checkpoint_every"],
        params:
            recipe=flags(TWIN_RECIPE),
            predict_end=lookup("datasets/predict_end", within=config),
            models=lookup("models_table", within=config),
            row=model_row,
            engine=engine,
            learning_rate=learning_rate,
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
        mem_mb=4000,
        runtime=60,
        checkpoint_every=config["training"]["checkpoint_every"],
    params:
        recipe=flags(TWIN_RECIPE),
        predict_end=lookup("datasets/predict_end", within=config),
        models=lookup("models_table", within=config),
        row=model_row,
        engine=engine,
        learning_rate=learning_rate,
        script=FINETUNE,
