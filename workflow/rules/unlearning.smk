# Unlearning. Like training, unlearning reruns when data, models or methods change, but not when
# code changes.
include: "functions/unlearning.smk"


rule unlearning:
    input:
        delivered("unlearning"),
    localrule: True


if unlearning_block:

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

    # One job applies every method to some models, because a job takes seconds to start. A method
    # whose results are right already is not applied again.
    rule unlearn:
        input:
            corpus=corpus,
            pretrained=ancient(pretrained_files),
            dataset=ORIGINAL_DATASET,
            weights=weights_to_unlearn,
        output:
            unlearned=by_method(forgotten.UNLEARNED.path, unlearning_jobs.applied),
            models=by_method(forgotten.UNLEARNED_MODELS.path, unlearning_jobs.applied),
            stages=by_method(forgotten.STAGES.path, unlearning_jobs.applied),
            manifest=by_method(forgotten.UNLEARNED_MANIFEST, unlearning_jobs.applied),
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
            **asking(UNLEARN, methods_and_models),
        shell:
            query_command("unlearned", "models", "stages")

    # An unlearned model as a folder that Hugging Face's `from_pretrained` reads. The job unlearns
    # this one model again, so that no job above has to keep the weights of thousands of models.
    rule export_unlearned_model:
        input:
            corpus=corpus,
            pretrained=ancient(pretrained_files),
            dataset=ORIGINAL_DATASET,
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
            **asking(EXPORT, model_to_export),
        shell:
            query_command(manifest="{output.folder}/palimpsest.json")

    rule measure_other_metrics:
        input:
            **EVALUATED,
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
            **unlearning_values("setups", "n", "repetitions", "pool"),
        script:
            "../scripts/make.py"

    use rule measure_other_metrics as measure_forgetting with:
        input:
            **EVALUATED,
            innocent=innocent_traces,
            manifests=trained_on_variant(RETAIN, paths.REPLICATES_MANIFEST),
        output:
            **{kind.name: kind.path for kind in SCORED},
        log:
            "logs/measure_forgetting/{recipe}/{model}/{language}/n{size}-seed{seed}.log",
        benchmark:
            "benchmarks/measure_forgetting/{recipe}/{model}/{language}/n{size}-seed{seed}.tsv"
        params:
            **made_by("palimpsest.unlearning.evaluate.evaluation:forgetting"),
            **scoring_values(),
            **retraining_values(),

    use rule measure_other_metrics as measure_forgotten_memorisation with:
        input:
            **EVALUATED,
            innocent=innocent_traces,
        output:
            **{kind.name: kind.path for kind in RESIDUAL},
        log:
            "logs/measure_forgotten_memorisation/{recipe}/{model}/{language}/n{size}-seed{seed}.log",
        benchmark:
            "benchmarks/measure_forgotten_memorisation/{recipe}/{model}/{language}/n{size}-seed{seed}.tsv"
        params:
            **made_by("palimpsest.unlearning.evaluate.evaluation:residual_tables"),
            loss_threshold=THRESHOLDS["loss_threshold"],
            accuracy_threshold=THRESHOLDS["accuracy_threshold"],

    # Every method with erase and repair phases, and its repair phases alone
    use rule measure_other_metrics as measure_ablation with:
        input:
            dataset=ORIGINAL_DATASET,
            originals=trained_on_variant(ORIGINAL, paths.REPLICATES_TRACE),
            retrained=trained_on_variant(RETAIN, paths.REPLICATES_TRACE),
            manifests=trained_on_variant(RETAIN, paths.REPLICATES_MANIFEST),
            unlearned=unlearned(forgotten.UNLEARNED.path, "ablated"),
            models=unlearned(forgotten.UNLEARNED_MODELS.path, "ablated"),
        output:
            table=forgotten.ABLATION.path,
        log:
            "logs/measure_ablation/{recipe}/{model}/{language}/n{size}-seed{seed}.log",
        benchmark:
            "benchmarks/measure_ablation/{recipe}/{model}/{language}/n{size}-seed{seed}.tsv"
        params:
            **made_by("palimpsest.unlearning.evaluate.evaluation:ablation"),
            **scoring_values(),
            **retraining_values(),
            parts=names_of_parts(),

    rule search_settings:
        input:
            corpus=corpus,
            pretrained=ancient(pretrained_files),
            dataset=ORIGINAL_DATASET,
            weights=weights_to_search_with,
        output:
            searched=by_method(forgotten.SEARCHED.path, search_jobs.methods),
            manifest=by_method(forgotten.SEARCH_MANIFEST, search_jobs.methods),
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
            **asking(SEARCH, search_jobs.values()),
        shell:
            query_command("searched")

    rule choose_settings:
        input:
            searched=search_jobs.searched(search_jobs.unlearning_runs),
            datasets=search_jobs.datasets(search_jobs.unlearning_runs),
            retrained=search_jobs.traces(search_jobs.unlearning_runs),
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
            **scoring_values(),
            **retraining_values(),
            settings=search_jobs.settings(),
            phases=search_jobs.phases(),
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


if transfer_jobs:

    use rule search_settings as transfer_settings with:
        input:
            corpus=corpus,
            pretrained=ancient(pretrained_files),
            dataset=ORIGINAL_DATASET,
            weights=weights_to_transfer_with,
        output:
            searched=by_method(forgotten.TRANSFER_SEARCHED, transfer_jobs.methods),
            manifest=by_method(forgotten.TRANSFER_MANIFEST, transfer_jobs.methods),
        log:
            "logs/transfer_settings/{recipe}/{model}/{language}/n{size}-seed{seed}.log",
        benchmark:
            "benchmarks/transfer_settings/{recipe}/{model}/{language}/n{size}-seed{seed}.tsv"
        resources:
            mem_mb=training_memory,
            runtime=transfer_minutes,
            gpu=training_gpus,
            checkpoint_every=checkpoint_every,
        params:
            **asking(SEARCH, transfer_jobs.values()),

    rule measure_transfer:
        input:
            searched=of_all_problems(transfer_jobs, transfer_jobs.searched),
            datasets=of_all_problems(transfer_jobs, transfer_jobs.datasets),
            retrained=of_all_problems(transfer_jobs, transfer_jobs.traces),
        output:
            table=forgotten.TRANSFER.path,
        log:
            "logs/measure_transfer/{recipe}/{model}/{language}/n{size}.log",
        benchmark:
            "benchmarks/measure_transfer/{recipe}/{model}/{language}/n{size}.tsv"
        conda:
            "../../envs/analysis.yaml"
        threads: 1
        resources:
            mem_mb=8000,
            runtime=30,
        params:
            **made_by("palimpsest.unlearning.tuning.transfer:transfer"),
            **scoring_values(),
            **retraining_values(),
            settings=transfer_jobs.settings(),
            tuning_seeds=transfer_jobs.block["tuning_seeds"],
        script:
            "../scripts/make.py"


if judge_jobs:

    use rule dataset_forgetting as dataset_traced_forgetting with:
        output:
            strings=with_variants(paths.DATASET, [TRACED]),
        log:
            "logs/dataset_traced_forgetting/{language}/n{size}-seed{seed}.log",
        benchmark:
            "benchmarks/dataset_traced_forgetting/{language}/n{size}-seed{seed}.tsv"
        params:
            **making([TRACED], split=INDEPENDENT),
            options=unlearning_values("validation", "groups", "share"),

    rule probe_models:
        input:
            corpus=corpus,
            pretrained=ancient(pretrained_files),
            dataset=ORIGINAL_DATASET,
            weights=weights_to_probe,
        output:
            probed=by_method(forgotten.PROBED.path, judge_jobs.names),
            manifest=by_method(forgotten.PROBED_MANIFEST, judge_jobs.names),
        log:
            "logs/probe_models/{recipe}/{model}/{language}/n{size}-seed{seed}.log",
        benchmark:
            "benchmarks/probe_models/{recipe}/{model}/{language}/n{size}-seed{seed}.tsv"
        conda:
            "../../envs/training.yaml"
        threads: training_threads
        resources:
            mem_mb=training_memory,
            runtime=probe_minutes,
            gpu=training_gpus,
            checkpoint_every=checkpoint_every,
        params:
            **asking(PROBE, judge_jobs.values()),
        shell:
            query_command("probed")

    rule judge_metrics:
        input:
            probed=of_all_problems(judge_jobs, judge_jobs.probed),
            datasets=of_all_problems(judge_jobs, judge_jobs.datasets),
        output:
            table=forgotten.JUDGED.path,
        log:
            "logs/judge_metrics/{recipe}/{model}/{language}/n{size}.log",
        benchmark:
            "benchmarks/judge_metrics/{recipe}/{model}/{language}/n{size}.tsv"
        conda:
            "../../envs/analysis.yaml"
        threads: 1
        resources:
            mem_mb=8000,
            runtime=60,
        params:
            **made_by("palimpsest.unlearning.judging.judged:judged"),
            **unlearning_values("confidence", "thresholds", "delta", "bin_width"),
            names=judge_jobs.names,
            study=judge_jobs.block["study"],
        script:
            "../scripts/make.py"


# Metrics of unlearning, judged on models of known training. Only this target makes these files.
rule unlearning_judged:
    input:
        judge_jobs.tables() if judge_jobs else [],
    localrule: True


# The settings of methods, compared on problems of their own. Only this target makes these files.
rule unlearning_tuning:
    input:
        forgotten.TUNING.path,
        forgotten.TUNED,
        list(TUNING_FIGURES.values()),
    localrule: True
