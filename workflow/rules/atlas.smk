# The atlas: cheap measures of memorisation against exact retraining without every string.
include: "functions/atlas.smk"


rule atlas:
    input:
        delivered("atlas"),
    localrule: True


rule retrain_without_each:
    input:
        traces=with_seeds(fill(paths.TRACE, variant="base")),
        datasets=with_seeds(paths.BASE_DATASET),
        removals=with_seeds(fill(paths.TRACE, variant=REMOVALS)),
        again=with_seeds(fill(paths.TRACE, variant=REMOVALS_AGAIN)),
    output:
        retrained=mapped.TRUTH.path,
        influence=mapped.INFLUENCE.path,
        halves=mapped.HALF_RUNS.path,
        curves=mapped.CURVES.path,
    log:
        "logs/retrain_without_each/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/retrain_without_each/{recipe}/{model}/{language}/n{size}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        **made_by("palimpsest.atlas.truth:truth_tables"),
        start=THRESHOLDS["start"],
    script:
        "../scripts/make.py"


rule attribute_by_gradients:
    input:
        corpus=corpus,
        pretrained=ancient(pretrained_files),
        dataset=with_seeds(paths.BASE_DATASET),
        checkpoints=with_seeds(fill(paths.CHECKPOINTS, variant="base")),
    output:
        **{kind.name: with_seeds(kind.path) for kind in mapped.OF_GRADIENTS},
        manifest=with_seeds(mapped.GRADIENTS_MANIFEST),
    log:
        "logs/attribute_by_gradients/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/attribute_by_gradients/{recipe}/{model}/{language}/n{size}.tsv"
    conda:
        "../../envs/training.yaml"
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=training_minutes,
        gpu=training_gpus,
        checkpoint_every=checkpoint_every,
    params:
        **asking(
            atlas_section.ATTRIBUTION,
            atlas_section.of_gradients(settings) if atlas_block else None,
        ),
    shell:
        ATTRIBUTE


rule pass_once_more:
    input:
        corpus=corpus,
        pretrained=ancient(pretrained_files),
        dataset=paths.BASE_DATASET,
        weights=weights_of_seeds,
    output:
        last_pass=mapped.LAST_PASS.path,
        manifest=mapped.LAST_PASS_MANIFEST,
    log:
        "logs/pass_once_more/{recipe}/{model}/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/pass_once_more/{recipe}/{model}/{language}/n{size}-seed{seed}.tsv"
    conda:
        "../../envs/training.yaml"
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=training_minutes,
        gpu=training_gpus,
        checkpoint_every=checkpoint_every,
    params:
        **asking(atlas_section.LAST_PASS, seeds_of_weights),
    shell:
        PASS_ONCE_MORE


rule pass_without_each:
    input:
        corpus=corpus,
        pretrained=ancient(pretrained_files),
        dataset=paths.BASE_DATASET,
        weights=[fill(paths.WEIGHTS, variant=of) for of in atlas_section.OF_REMOVALS],
    output:
        removed_tokens=mapped.REMOVED_TOKENS.path,
        manifest=mapped.REMOVED_TOKENS_MANIFEST,
    log:
        "logs/pass_without_each/{recipe}/{model}/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/pass_without_each/{recipe}/{model}/{language}/n{size}-seed{seed}.tsv"
    conda:
        "../../envs/training.yaml"
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=training_minutes,
        gpu=training_gpus,
        checkpoint_every=checkpoint_every,
    params:
        **asking(atlas_section.REMOVED_TOKENS),
    shell:
        PASS_WITHOUT_EACH


rule retrain_fields:
    input:
        datasets=with_seeds(paths.BASE_DATASET),
        tokens=with_seeds(fill(paths.TOKENS, variant="base")),
        removed_tokens=with_seeds(mapped.REMOVED_TOKENS.path),
        corpus=corpus,
    output:
        table=mapped.FIELDS.path,
    log:
        "logs/retrain_fields/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/retrain_fields/{recipe}/{model}/{language}/n{size}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.atlas.fields:field_table"),
        predict_end=lookup("datasets/predict_end", within=config),
    script:
        "../scripts/make.py"


rule weigh_measures:
    input:
        unpack(by_gradients),
        unpack(by_last_pass),
        corpus=corpus,
        traces=with_seeds(fill(paths.TRACE, variant="base")),
        datasets=with_seeds(paths.BASE_DATASET),
        tokens=with_seeds(fill(paths.TOKENS, variant="base")),
        truth=mapped.TRUTH.path,
        influence=mapped.INFLUENCE.path,
        halves=mapped.HALF_RUNS.path,
        manifests=with_seeds(fill(paths.MANIFEST, variant="base")),
        removals_manifests=with_seeds(fill(paths.MANIFEST, variant=REMOVALS)),
    output:
        contenders=mapped.CONTENDERS.path,
        frontier=mapped.FRONTIER.path,
        atlas=mapped.ATLAS.path,
    log:
        "logs/weigh_measures/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/weigh_measures/{recipe}/{model}/{language}/n{size}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        **made_by("palimpsest.atlas.frontier:frontier_tables"),
        **THRESHOLDS,
    script:
        "../scripts/make.py"


rule bound_self_influence:
    input:
        truth=of_all_cells(mapped.TRUTH),
        contenders=of_all_cells(mapped.CONTENDERS),
    output:
        table=mapped.CONFORMAL.path,
    log:
        "logs/bound_self_influence/{language}.log",
    benchmark:
        "benchmarks/bound_self_influence/{language}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.atlas.conformal:conformal_table"),
        families=families_of_models,
    script:
        "../scripts/make.py"


rule draw_strings:
    input:
        datasets=datasets_of_cells(),
        truth=of_all_cells(mapped.TRUTH),
        curves=of_all_cells(mapped.CURVES),
        influence=of_all_cells(mapped.INFLUENCE),
        contenders=of_all_cells(mapped.CONTENDERS),
        atlas=of_all_cells(mapped.ATLAS),
    output:
        page=mapped.STRINGS_PAGE,
    log:
        "logs/draw_strings.log",
    benchmark:
        "benchmarks/draw_strings.tsv"
    conda:
        "../../envs/figures.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.atlas.strings_page:strings_page"),
    script:
        "../scripts/make.py"


# Predictions come before the strings on which the later runs are trained.
rule foretell:
    input:
        traces=paths_of(foretelling_runs(EARLIER), paths.TRACE),
        datasets=paths_of(foretelling_runs(EARLIER), paths.DATASET),
        strings=of_later_seeds(paths.BASE_DATASET),
    output:
        foretold=of_later_seeds(mapped.FORETOLD.path),
        promise=update(of_later_seeds(mapped.PROMISE.path)),
    log:
        "logs/foretell/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/foretell/{recipe}/{model}/{language}/n{size}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.atlas.foretelling:foretell"),
        recipes=recipes_of_foretelling,
        n_parameters=parameters_of_foretelling,
        start=THRESHOLDS["start"],
        loss_threshold=THRESHOLDS["loss_threshold"],
    script:
        "../scripts/make.py"


use rule dataset as dataset_foretold with:
    input:
        ancient(promises_on),
        corpus=corpus,
    output:
        strings=with_variants(paths.DATASET, [FORETOLD]),
    log:
        "logs/dataset_foretold/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/dataset_foretold/{language}/n{size}-seed{seed}.tsv"
    params:
        **making([FORETOLD]),


rule judge_foretelling:
    input:
        foretold=of_later_seeds(mapped.FORETOLD.path),
        promise=of_later_seeds(mapped.PROMISE.path),
        traces=of_later_seeds(fill(paths.TRACE, variant=FORETOLD)),
        datasets=of_later_seeds(fill(paths.DATASET, variant=FORETOLD)),
        manifests=of_later_seeds(fill(paths.MANIFEST, variant=FORETOLD)),
    output:
        table=mapped.FORETELLING.path,
    log:
        "logs/judge_foretelling/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/judge_foretelling/{recipe}/{model}/{language}/n{size}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.atlas.foretelling:foretelling_table"),
        start=THRESHOLDS["start"],
        loss_threshold=THRESHOLDS["loss_threshold"],
    script:
        "../scripts/make.py"
