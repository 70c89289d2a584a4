# Training-data density: leakage, densities of trained models' strings, and texts of the user's own.
include: "functions/density.smk"
include: "functions/density_texts.smk"


rule density:
    input:
        delivered("density"),
    localrule: True


# Languages with equally many productions share rules, because they have the same variants.
for suffix, (languages, variants) in leaky_languages().items():

    rule:
        name:
            f"dataset_leaked{suffix}"
        input:
            corpus=corpus,
        output:
            strings=with_variants(paths.DATASET, variants),
        log:
            f"logs/dataset_leaked{suffix}/{{language}}/n{{size}}-seed{{seed}}.log",
        benchmark:
            f"benchmarks/dataset_leaked{suffix}/{{language}}/n{{size}}-seed{{seed}}.tsv"
        wildcard_constraints:
            language="|".join(languages),
        priority: 1000
        conda:
            "../../envs/languages.yaml"
        threads: 1
        resources:
            mem_mb=2000,
            runtime=30,
        params:
            # The test strings are not drawn from a test set, and nothing is set apart for them.
            **making(variants, split=INDEPENDENT),
            options=values_of("density/leakage", "tests", "leaked", "level", "redrawn"),
        script:
            "../scripts/make.py"


for part, (languages, variants) in embedded_together().items():

    rule:
        name:
            f"embed_strings_{part}"
        input:
            corpus=corpus,
            pretrained=ancient(pretrained_files),
            dataset=of_variants_and_seeds(paths.DATASET, variants),
            weights=of_variants_and_seeds(paths.WEIGHTS, variants),
        output:
            embeddings=of_variants_and_seeds(dense.EMBEDDINGS.path, variants),
            manifest=of_variants_and_seeds(density_section.MANIFEST, variants),
        log:
            f"logs/embed_strings_{part}/{{recipe}}/{{model}}/{{language}}/n{{size}}.log",
        benchmark:
            f"benchmarks/embed_strings_{part}/{{recipe}}/{{model}}/{{language}}/n{{size}}.tsv"
        wildcard_constraints:
            language="|".join(languages),
        conda:
            "../../envs/training.yaml"
        threads: training_threads
        resources:
            mem_mb=training_memory,
            runtime=training_minutes,
            gpu=training_gpus,
            checkpoint_every=checkpoint_every,
        params:
            **asking(density_section.EMBEDDING),
        shell:
            EMBED_STRINGS

    rule:
        name:
            f"estimate_density_{part}"
        input:
            datasets=of_variants_and_seeds(paths.DATASET, variants),
            embeddings=of_variants_and_seeds(dense.EMBEDDINGS.path, variants),
        output:
            **{
                kind.name: of_variants_and_seeds(kind.path, variants)
                for kind in density_section.OF_RUN
            },
        log:
            f"logs/estimate_density_{part}/{{recipe}}/{{model}}/{{language}}/n{{size}}.log",
        benchmark:
            f"benchmarks/estimate_density_{part}/{{recipe}}/{{model}}/{{language}}/n{{size}}.tsv"
        wildcard_constraints:
            language="|".join(languages),
        conda:
            "../../envs/analysis.yaml"
        threads: 1
        resources:
            mem_mb=8000,
            runtime=60,
        params:
            **made_by("palimpsest.density.densities:densities"),
            **values_of("density", "kernels", "neighbours", "approximation"),
        script:
            "../scripts/make.py"


rule compare_with_truth:
    input:
        **files_of_runs(with_seeds),
    output:
        table=dense.TRUTH.path,
    log:
        "logs/compare_with_truth/{recipe}/{model}/{language}/n{size}/{variant}.log",
    benchmark:
        "benchmarks/compare_with_truth/{recipe}/{model}/{language}/n{size}/{variant}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.density.truth:truth"),
    script:
        "../scripts/make.py"


use rule compare_with_truth as compare_leakage with:
    input:
        **files_of_runs(of_factorial),
        embeddings=fullest_leak(dense.EMBEDDINGS.path),
    output:
        **{kind.name: kind.path for kind in dense.OF_FACTORIAL},
    log:
        "logs/compare_leakage/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/compare_leakage/{recipe}/{model}/{language}/n{size}.tsv"
    # The regressions wait for it, and take longer than figures.
    priority: 100
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        **made_by("palimpsest.density.leakage_tables:factorial"),
        **values_of("density", "shown"),


use rule compare_with_truth as compare_left_out with:
    input:
        **files_of_runs(left_out_and_whole),
        corpus=corpus,
    output:
        table=dense.LEFT_OUT.path,
    log:
        "logs/compare_left_out/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/compare_left_out/{recipe}/{model}/{language}/n{size}.tsv"
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        **made_by("palimpsest.density.leakage_tables:left_out"),
        **values_of("density", "shown"),


use rule compare_with_truth as regress_on_density with:
    input:
        leakage=dense.LEAKAGE.path,
    output:
        table=dense.REGRESSIONS.path,
    log:
        "logs/regress_on_density/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/regress_on_density/{recipe}/{model}/{language}/n{size}.tsv"
    priority: 100
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        **made_by("palimpsest.density.regressions:regress"),


use rule compare_with_truth as compare_memorised with:
    input:
        **files_of_runs(with_seeds),
        starts=memorised.STARTS.path,
    output:
        table=dense.MEMORISED.path,
    log:
        "logs/compare_memorised/{recipe}/{model}/{language}/n{size}/{variant}.log",
    benchmark:
        "benchmarks/compare_memorised/{recipe}/{model}/{language}/n{size}/{variant}.tsv"
    params:
        **made_by("palimpsest.density.memorised:memorised"),
        **THRESHOLDS,


# Texts of the user's own; `language` in their paths is the name of the text.
rule segment_text:
    input:
        files_of_texts,
        corpus=of_text("corpus"),
        queries=query_files,
    output:
        table=dense.SEGMENTS.path,
    log:
        "logs/segment_text/{language}/{role}.log",
    benchmark:
        "benchmarks/segment_text/{language}/{role}.tsv"
    wildcard_constraints:
        role="|".join(own_texts.SEGMENT_ROLES),
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        **least_segments(),
        mem_mb=8000,
        runtime=60,
    params:
        **made_by("palimpsest.density.segments:of_text"),
        query_sets=query_sets,
        field=of_text("field"),
        response=of_text("response"),
        window=of_text("window"),
        stride=of_text("stride"),
    script:
        "../scripts/make.py"


rule embed_text:
    input:
        segments=dense.SEGMENTS.path,
        corpus=embedded_corpus,
        models=local_text_models,
        pretrained=ancient(made_text_models),
    output:
        table=dense.TEXT_EMBEDDINGS.path,
    log:
        "logs/embed_text/{language}/{role}.log",
    benchmark:
        "benchmarks/embed_text/{language}/{role}.tsv"
    wildcard_constraints:
        role="|".join(own_texts.SEGMENT_ROLES),
    conda:
        "../../envs/training.yaml"
    threads: text_threads
    resources:
        mem_mb=text_memory,
        runtime=600,
        gpu=text_gpus,
    params:
        how=how_to_embed,
        row=text_model_row,
        models=lookup("models_table", within=config),
        script=EMBED_TEXT_SCRIPT,
    shell:
        EMBED_TEXT


rule text_density:
    input:
        segments=of_roles(dense.SEGMENTS.path),
        embeddings=of_roles(dense.TEXT_EMBEDDINGS.path),
        given=given_neighbours,
    output:
        **{kind.name: kind.path for kind in own_texts.OF_TEXT},
    log:
        "logs/text_density/{language}.log",
    benchmark:
        "benchmarks/text_density/{language}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=16000,
        runtime=120,
    params:
        **made_by("palimpsest.density.text_density:of_text"),
        **values_of("density", "kernels", "neighbours", "approximation"),
    script:
        "../scripts/make.py"
