# Training reruns when data, model or recipe change, not when code does: an edited comment must not
# retrain a large model. Each manifest records the code's revision. Traces that are still right are
# kept (`update`): the command looks whether they are of this very model, recipe and data.
rule train_full:
    input:
        grammar=grammar,
        dataset=DATASET,
    output:
        trace=update(TRACE),
        manifest=update(MANIFEST),
    params:
        recipe=flags(config["training"]),
        predict_end=lookup("datasets/predict_end", within=config),
        models=lookup("models_table", within=config),
        row=model_row,
        learning_rate=learning_rate,
        script=FINETUNE,
    log:
        "logs/train/{model}/{language}/n{size}-seed{seed}/{variant}.log",
    benchmark:
        "benchmarks/train/{model}/{language}/n{size}-seed{seed}/{variant}.tsv"
    threads: 1
    resources:
        mem_mb=16000,
        runtime=720,
        gpu=config["training"]["processes"],
    wildcard_constraints:
        model=r"[A-Za-z0-9][A-Za-z0-9._-]*(?<!-twin)",
    conda:
        "../../envs/training.yaml"
    shell:
        "python {params.script:q} --model {wildcards.model} --models {params.models:q}"
        " --language {input.grammar:q} --dataset {input.dataset}"
        " --trace {output.trace} --manifest {output.manifest} --state results/.state"
        " --learning-rate {params.learning_rate} --predict-end {params.predict_end}"
        " --threads {threads} {params.recipe} > {log} 2>&1"
        " || {{ grep '^error:' {log} >&2; exit 1; }}"


# A twin trains in seconds, so one process trains all its seeds; another seed trains that seed alone.
use rule train_full as train_twins with:
    input:
        grammar=grammar,
        dataset=with_seeds(DATASET),
    output:
        trace=update(with_seeds(TRACE)),
        manifest=update(with_seeds(MANIFEST)),
    params:
        recipe=flags(TWIN_RECIPE),
        predict_end=lookup("datasets/predict_end", within=config),
        models=lookup("models_table", within=config),
        row=model_row,
        learning_rate=learning_rate,
        script=FINETUNE,
    log:
        "logs/train/{model}/{language}/n{size}/{variant}.log",
    benchmark:
        "benchmarks/train/{model}/{language}/n{size}/{variant}.tsv"
    resources:
        mem_mb=2000,
        runtime=60,
    wildcard_constraints:
        model=r"[A-Za-z0-9][A-Za-z0-9._-]*-twin",
        variant="base|dedup|dedup-matched",


# With and without every target: the longest job of a small study, so it starts first.
use rule train_twins as train_twins_on_targets with:
    input:
        grammar=grammar,
        dataset=with_seeds(with_targets(DATASET)),
    output:
        trace=update(with_seeds(with_targets(TRACE))),
        manifest=update(with_seeds(with_targets(MANIFEST))),
    log:
        "logs/train/{model}/{language}/n{size}/targets.log",
    benchmark:
        "benchmarks/train/{model}/{language}/n{size}/targets.tsv"
    priority: 1
    wildcard_constraints:
        model=r"[A-Za-z0-9][A-Za-z0-9._-]*-twin",
