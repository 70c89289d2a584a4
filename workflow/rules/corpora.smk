# Languages, and the datasets sampled from them.
include: "functions/corpora.smk"


rule languages:
    input:
        delivered("languages"),
    localrule: True


rule datasets:
    input:
        experiment.datasets,
    localrule: True


rule language:
    input:
        corpus=corpus,
    output:
        grammar=paths.GRAMMAR,
        derivation=paths.DERIVATION,
        language_sample=paths.LANGUAGE_SAMPLE,
        targets=paths.LANGUAGE_TARGETS,
        language_summary=paths.LANGUAGE_SUMMARY,
    log:
        "logs/language/{language}.log",
    benchmark:
        "benchmarks/language/{language}.tsv"
    # Datasets come first: in a small experiment, the longest trainings wait for all datasets.
    priority: 1000
    conda:
        "../../envs/languages.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        **made_by("palimpsest.datasets.grammar:language_tables"),
        sample=lookup("datasets/language_sample", within=config),
        targets=experiment.n_targets,
    script:
        "../scripts/make.py"


# Records of the user's own; `language` in the path is their name.
rule corpus_of_records:
    input:
        files_of_records,
        records=of_records("file"),
    output:
        table=paths.CORPUS_OF_RECORDS,
    log:
        "logs/corpus_of_records/{language}.log",
    benchmark:
        "benchmarks/corpus_of_records/{language}.tsv"
    priority: 1000
    conda:
        "../../envs/languages.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        **made_by("palimpsest.corpora.records:corpus_table"),
        columns=of_records("columns"),
    script:
        "../scripts/make.py"


# A dataset as a folder for other programs. No target asks for it: name the folder.
rule export_dataset:
    input:
        corpus=corpus,
        strings=paths.DATASET,
    output:
        folder=directory(paths.EXPORTED_DATASET),
    log:
        "logs/export_dataset/{language}/n{size}-seed{seed}/{variant}.log",
    benchmark:
        "benchmarks/export_dataset/{language}/n{size}-seed{seed}/{variant}.tsv"
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        **made_by("palimpsest.datasets.exported:export_dataset"),
        predict_end=lookup("datasets/predict_end", within=config),
    script:
        "../scripts/make.py"


rule dataset:
    input:
        corpus=corpus,
    output:
        strings=with_variants(paths.DATASET, [BASE, DEDUP]),
    log:
        "logs/dataset/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/dataset/{language}/n{size}-seed{seed}.tsv"
    priority: 1000
    conda:
        "../../envs/languages.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        **making([BASE, DEDUP]),
    script:
        "../scripts/make.py"


use rule dataset as dataset_matched with:
    input:
        corpus=corpus,
        counterpart=counterpart,
    output:
        strings=with_variants(paths.DATASET, [DEDUP_MATCHED]),
    log:
        "logs/dataset_matched/{language}/n{size}-seed{seed}.log",
    benchmark:
        "benchmarks/dataset_matched/{language}/n{size}-seed{seed}.tsv"
    params:
        **making([DEDUP_MATCHED]),
