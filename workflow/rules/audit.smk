# Whether records were in the training data of models. In paths, `language` is the name of a corpus,
# and `model` that of a target in the configuration.
include: "functions/audit.smk"
include: "functions/audit_checkpoints.smk"


rule audit:
    input:
        asked_of_audit,
    localrule: True


use rule dataset as dataset_members with:
    output:
        strings=with_variants(paths.DATASET, [MEMBERS]),
    log:
        "logs/dataset_members/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/dataset_members/{language}/n{size}-seed{seed}.tsv"
    params:
        **making([MEMBERS], split=INDEPENDENT),


rule audit_target:
    input:
        corpus=corpus,
        models=local_files_of_target,
        pretrained=ancient(made_files_of_target),
        trained=trained_target,
    output:
        passes=audited.PASSES.path,
        continuations=audited.CONTINUATIONS.path,
    log:
        "logs/audit_target/{language}/{model}.log",
    benchmark:
        "benchmarks/audit_target/{language}/{model}.tsv"
    conda:
        "../../envs/training.yaml"
    threads: asking_threads
    resources:
        mem_mb=16000,
        runtime=600,
        gpu=gpus_of_checkpoints,
    params:
        asked=how_to_audit,
        script=AUDIT_TARGET_SCRIPT,
    shell:
        AUDIT_TARGET


rule score_attacks:
    input:
        passes=audited.PASSES.path,
        records=paths.CORPUS_OF_RECORDS,
        answers=answers_about_target,
    output:
        table=audited.SCORES.path,
    log:
        "logs/score_attacks/{language}/{model}.log",
    benchmark:
        "benchmarks/score_attacks/{language}/{model}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.audit.tables:scores"),
        attacks=attacks_of_audit,
        retrained=retrained_model,
        seed=retrained_seed,
    script:
        "../scripts/make.py"


rule attack_roc:
    input:
        scores=audited.SCORES.path,
    output:
        table=audited.ROC.path,
    log:
        "logs/attack_roc/{language}/{model}.log",
    benchmark:
        "benchmarks/attack_roc/{language}/{model}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.audit.tables:roc_table"),
        **values_of("audit", "false_positive_rates"),
    script:
        "../scripts/make.py"


rule extract_records:
    input:
        continuations=audited.CONTINUATIONS.path,
    output:
        extracted=audited.EXTRACTED.path,
        extraction_shares=audited.EXTRACTION.path,
    log:
        "logs/extract_records/{language}/{model}.log",
    benchmark:
        "benchmarks/extract_records/{language}/{model}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.audit.extraction:extracted_records"),
    script:
        "../scripts/make.py"


rule judge_detectors:
    input:
        scores=audited.SCORES.path,
        extracted=audited.EXTRACTED.path,
        records=paths.CORPUS_OF_RECORDS,
        answers=answers_about_target,
    output:
        table=audited.DETECTORS.path,
    log:
        "logs/judge_detectors/{language}/{model}.log",
    benchmark:
        "benchmarks/judge_detectors/{language}/{model}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.audit.detectors:detected"),
        **values_of("audit", "false_positive_rates"),
        retrained=retrained_model,
        seed=retrained_seed,
        coin=coin_of_target,
    script:
        "../scripts/make.py"


rule audit_findings:
    input:
        continuations=audited.CONTINUATIONS.path,
        records=paths.CORPUS_OF_RECORDS,
    output:
        **{kind.name: kind.path for kind in audited.OF_RECITING},
        **audited.COPIES,
    log:
        "logs/audit_findings/{language}/{model}.log",
    benchmark:
        "benchmarks/audit_findings/{language}/{model}.tsv"
    conda:
        "../../envs/private.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.audit.findings:findings"),
        **values_of("audit", "show_secrets"),
    script:
        "../scripts/make.py"


rule ask_checkpoint:
    input:
        corpus=corpus,
        models=local_files_of_checkpoint,
        pretrained=ancient(made_files_of_checkpoint),
    output:
        table=checkpoint_kinds.ANSWERS.path,
    log:
        "logs/ask_checkpoint/{language}/{model}.log",
    benchmark:
        "benchmarks/ask_checkpoint/{language}/{model}.tsv"
    conda:
        "../../envs/training.yaml"
    threads: asking_threads
    resources:
        mem_mb=16000,
        runtime=600,
        gpu=gpus_of_checkpoints,
    params:
        asked=how_to_ask_checkpoint,
        script=ASK_CHECKPOINT_SCRIPT,
    shell:
        ASK_CHECKPOINT


rule score_checkpoint:
    input:
        answers=checkpoint_kinds.ANSWERS.path,
    output:
        table=checkpoint_kinds.SCORES.path,
    log:
        "logs/score_checkpoint/{language}/{model}.log",
    benchmark:
        "benchmarks/score_checkpoint/{language}/{model}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.audit.checkpoints.scores:scores"),
    script:
        "../scripts/make.py"


rule compare_checkpoints:
    input:
        scores=scores_of_set,
    output:
        **{kind.name: kind.path for kind in checkpoint_kinds.OF_SETS},
        open_unlearning=checkpoint_kinds.OPEN_UNLEARNING.path,
    log:
        "logs/compare_checkpoints/{language}/{model}.log",
    benchmark:
        "benchmarks/compare_checkpoints/{language}/{model}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=60,
    params:
        **made_by("palimpsest.audit.checkpoints.comparing:compare"),
        **values_of("audit", "false_positive_rates"),
        roles=roles_of_set,
    script:
        "../scripts/make.py"
