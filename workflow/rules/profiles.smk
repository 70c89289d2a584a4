# Memorisation profiles: streams, the estimates of one run, and their exact truth.
include: "functions/profiles.smk"


rule profiles:
    input:
        delivered("profiles"),
    localrule: True


use rule dataset as dataset_stream with:
    output:
        strings=with_variants(paths.DATASET, [STREAM, *STREAMS_WITHOUT]),
    log:
        "logs/dataset_stream/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/dataset_stream/{language}/n{size}-seed{seed}.tsv"
    params:
        # The strings of a stream are distinct, and need no stand-ins.
        **making([STREAM, *STREAMS_WITHOUT], split=INDEPENDENT),
        options=values_of("profiles", "cohorts", "panel", "validation"),


# The streams of all sizes of a seed are made together, because their strings are drawn together.
use rule dataset as dataset_diluted with:
    output:
        strings=with_diluted_sizes(with_variants(paths.DATASET, dilution.VARIANTS)),
    log:
        "logs/dataset_diluted/{language}/seed{seed}.log",
    benchmark:
        "benchmarks/dataset_diluted/{language}/seed{seed}.tsv"
    params:
        **making(dilution.VARIANTS, split=INDEPENDENT),
        options={
            **values_of("profiles", "cohort_size", "validation"),
            **values_of("profiles/dilution", "sizes", "copies", "probes"),
        },


rule estimate_profiles:
    input:
        **{name: with_seeds(pattern) for name, pattern in STREAM_FILES.items()},
    output:
        **{kind.name: kind.path for kind in profile_section.OF_MODEL},
    log:
        "logs/estimate_profiles/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/estimate_profiles/{recipe}/{model}/{language}/n{size}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.profiles.profile:of_streams"),
        **values_of("profiles", "panel"),
    script:
        "../scripts/make.py"


rule compare_with_retraining:
    input:
        profile=profiled.PROFILE.path,
        traces=of_profile_seeds(STREAM_FILES["traces"]),
        datasets=of_profile_seeds(STREAM_FILES["datasets"]),
        without=of_profile_seeds(with_variants(paths.TRACE, STREAMS_WITHOUT)),
    output:
        **{kind.name: kind.path for kind in profile_section.OF_RETRAINING},
    log:
        "logs/compare_with_retraining/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/compare_with_retraining/{recipe}/{model}/{language}/n{size}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.profiles.truth:compared_with_retraining"),
    script:
        "../scripts/make.py"


use rule compare_with_retraining as compare_schedules with:
    input:
        profile=fill(profiled.PROFILE.path, recipe=profile_block["recipe"]),
        contrast=profiled.PROFILE.path,
    output:
        table=profiled.PROFILE_SCHEDULES.path,
    log:
        "logs/compare_schedules/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/compare_schedules/{recipe}/{model}/{language}/n{size}.tsv"
    params:
        **made_by("palimpsest.profiles.schedules:schedules"),


rule question_streams:
    input:
        corpus=corpus,
        pretrained=ancient(pretrained_files),
        dataset=of_profile_seeds(STREAM_FILES["datasets"]),
        weights=of_profile_seeds(fill(paths.WEIGHTS, variant=STREAM)),
    output:
        **{kind.name: of_profile_seeds(kind.path) for kind in profile_section.OF_FINAL_MODEL},
        manifest=of_profile_seeds(profile_section.FINAL_MODEL_MANIFEST),
    log:
        "logs/question_streams/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/question_streams/{recipe}/{model}/{language}/n{size}.tsv"
    conda:
        "../../envs/training.yaml"
    threads: training_threads
    resources:
        mem_mb=training_memory,
        runtime=training_minutes,
        gpu=training_gpus,
        checkpoint_every=checkpoint_every,
    params:
        **asking(profile_section.QUESTIONS),
    shell:
        QUESTION_STREAMS


use rule compare_with_retraining as compare_notions with:
    input:
        profile=profiled.PROFILE.path,
        exact_profile=profiled.EXACT_PROFILE.path,
        datasets=of_profile_seeds(STREAM_FILES["datasets"]),
        replicates=of_profile_seeds(with_variants(paths.TRACE, STREAM_REPLICATES)),
        continuations=of_profile_seeds(profiled.CONTINUATIONS.path),
        influences=of_profile_seeds(profiled.INFLUENCES.path),
    output:
        table=profiled.NOTIONS.path,
    log:
        "logs/compare_notions/{recipe}/{model}/{language}/n{size}.log",
    benchmark:
        "benchmarks/compare_notions/{recipe}/{model}/{language}/n{size}.tsv"
    params:
        **made_by("palimpsest.profiles.notions:beside_other_notions"),
        length=lookup("profiles/notions/continuation", within=config, default=None),


use rule compare_with_retraining as correlate_profiles with:
    input:
        profiles=profiles_to_correlate,
    output:
        table=profiled.PROFILE_CORRELATION.path,
    log:
        "logs/correlate_profiles/{language}/n{size}.log",
    benchmark:
        "benchmarks/correlate_profiles/{language}/n{size}.tsv"
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        **made_by("palimpsest.profiles.correlation:correlations"),


use rule compare_with_retraining as measure_dilution with:
    input:
        **{name: with_diluted_sizes(with_seeds(pattern)) for name, pattern in DILUTED_FILES.items()},
    output:
        **{kind.name: kind.path for kind in profile_section.OF_DILUTION},
    log:
        "logs/measure_dilution/{recipe}/{model}/{language}.log",
    benchmark:
        "benchmarks/measure_dilution/{recipe}/{model}/{language}.tsv"
    params:
        **made_by("palimpsest.profiles.dilution_effects:dilution_tables"),


# A panel that is made from checkpoints; in the paths, `language` is the name of the panel, and
# `model` is the step of a checkpoint.
use rule compare_with_retraining as draw_panel with:
    input:
        tokens=of_measured_panel("tokens"),
        steps=of_measured_panel("steps"),
        texts=of_measured_panel("texts"),
    output:
        table=profiled.PANEL_ROWS.path,
    log:
        "logs/draw_panel/{language}.log",
    benchmark:
        "benchmarks/draw_panel/{language}.tsv"
    params:
        **made_by("palimpsest.profiles.panel_rows:drawn"),
        parameters=draws_of_panel,


rule ask_panel:
    input:
        rows=profiled.PANEL_ROWS.path,
        strings=of_measured_panel("tokens", "texts"),
        models=local_files_of_panel,
        pretrained=ancient(made_files_of_panel),
    output:
        table=profiled.PANEL_OUTCOMES.path,
    log:
        "logs/ask_panel/{language}/{model}.log",
    benchmark:
        "benchmarks/ask_panel/{language}/{model}.tsv"
    conda:
        "../../envs/training.yaml"
    threads: asking_threads
    resources:
        mem_mb=16000,
        runtime=600,
        gpu=gpus_of_checkpoints,
    params:
        asked=how_to_ask_panel,
        script=ASK_PANEL_SCRIPT,
    shell:
        ASK_PANEL


use rule compare_with_retraining as join_panel with:
    input:
        rows=profiled.PANEL_ROWS.path,
        outcomes=outcomes_of_panel,
    output:
        table=profiled.MEASURED_PANEL.path,
    log:
        "logs/join_panel/{language}.log",
    benchmark:
        "benchmarks/join_panel/{language}.tsv"
    params:
        **made_by("palimpsest.profiles.panel_joining:joined"),
        checkpoints=checkpoints_of_panel,


# A panel of the user's own; `language` in its paths is the name of the panel.
use rule compare_with_retraining as estimate_panel with:
    input:
        panel=of_panel("file"),
    output:
        panel_profile=profiled.PANEL_PROFILE.path,
        panel_persistence=profiled.PANEL_PERSISTENCE.path,
    log:
        "logs/estimate_panel/{language}.log",
    benchmark:
        "benchmarks/estimate_panel/{language}.tsv"
    params:
        **made_by("palimpsest.profiles.profile:of_panel_file"),
        columns=of_panel("columns"),
        others=of_panel("other_outcomes"),


# All panels together; `language` in the paths is the name of the study.
use rule compare_with_retraining as compare_panels with:
    input:
        panels=[panel.file for panel in panels_of_user.values()],
        profiles=with_panels(profiled.PANEL_PROFILE.path),
        persistence=with_panels(profiled.PANEL_PERSISTENCE.path),
    output:
        **{kind.name: kind.path for kind in profile_section.OF_STUDY},
    log:
        "logs/compare_panels/{language}.log",
    benchmark:
        "benchmarks/compare_panels/{language}.tsv"
    params:
        **made_by("palimpsest.profiles.panels_study:study"),
        names=list(panels_of_user),
        columns=[dict(panel.columns) for panel in panels_of_user.values()],
