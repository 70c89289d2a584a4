# Information measures: the activations of trained models, and how neurons vary, alone and together.
include: "functions/information.smk"


rule information:
    input:
        delivered("information"),
    localrule: True


if information_block:

    use rule dataset as dataset_intervened with:
        output:
            strings=with_variants(paths.DATASET, INFORMATION_VARIANTS),
        log:
            "logs/dataset_intervened/{language}/n{size}-seed{seed}.log",
        benchmark:
            "benchmarks/dataset_intervened/{language}/n{size}-seed{seed}.tsv"
        params:
            # The evaluated strings are not drawn from a test set, and nothing is set apart.
            **making(INFORMATION_VARIANTS, split=INDEPENDENT),
            options=values_of("information", "tests", "label_noise"),

    rule read_activations:
        input:
            corpus=corpus,
            pretrained=ancient(pretrained_files),
            dataset=of_information(paths.DATASET),
            weights=of_information(paths.WEIGHTS),
        output:
            **of_information_kinds(neural.OF_MODEL),
            manifest=of_information(information_section.MANIFEST),
        log:
            "logs/read_activations/{recipe}/{model}/{language}/n{size}.log",
        benchmark:
            "benchmarks/read_activations/{recipe}/{model}/{language}/n{size}.tsv"
        conda:
            "../../envs/training.yaml"
        threads: training_threads
        resources:
            mem_mb=training_memory,
            runtime=training_minutes,
            gpu=training_gpus,
            checkpoint_every=checkpoint_every,
        params:
            **asking(information_section.READING, information_section.sites(settings)),
        shell:
            READ_ACTIVATIONS

    rule measure_neurons:
        input:
            activations=of_information(neural.ACTIVATIONS.path),
        output:
            **of_information_kinds(neural.OF_NEURONS),
        log:
            "logs/measure_neurons/{recipe}/{model}/{language}/n{size}.log",
        benchmark:
            "benchmarks/measure_neurons/{recipe}/{model}/{language}/n{size}.tsv"
        conda:
            "../../envs/analysis.yaml"
        threads: 2
        resources:
            mem_mb=8000,
            runtime=120,
        params:
            **made_by("palimpsest.information.measured:of_runs"),
            **values_of("information", "bins", "neighbours", "pairs"),
        script:
            "../scripts/make.py"

    rule compare_information:
        input:
            **of_information_kinds(neural.COMPARED),
            datasets=of_information(paths.DATASET),
            traces=of_information(paths.TRACE),
        output:
            table=neural.INFORMATION.path,
        log:
            "logs/compare_information/{recipe}/{model}/{language}/n{size}.log",
        benchmark:
            "benchmarks/compare_information/{recipe}/{model}/{language}/n{size}.tsv"
        conda:
            "../../envs/analysis.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=30,
        params:
            **made_by("palimpsest.information.comparison:information_table"),
            n_layers=blocks_of_model,
        script:
            "../scripts/make.py"

    # Both variants of a seed are made together, because their strings are drawn together.
    use rule dataset as dataset_finetuned with:
        output:
            strings=of_finetuned(paths.DATASET, "{seed}"),
        log:
            "logs/dataset_finetuned/{language}/seed{seed}.log",
        benchmark:
            "benchmarks/dataset_finetuned/{language}/seed{seed}.tsv"
        params:
            **making(finetuned.VARIANTS, split=INDEPENDENT),
            options=FINETUNED,

    rule measure_layers:
        input:
            corpus=corpus,
            pretrained=ancient(pretrained_files),
            dataset=with_information_seeds(paths.DATASET),
            checkpoints=with_information_seeds(paths.CHECKPOINTS),
        output:
            layers=with_information_seeds(neural.LAYERS.path),
            manifest=with_information_seeds(information_section.MANIFEST),
        log:
            "logs/measure_layers_{variant}/{recipe}/{model}/{language}/n{size}.log",
        benchmark:
            "benchmarks/measure_layers_{variant}/{recipe}/{model}/{language}/n{size}.tsv"
        wildcard_constraints:
            variant="|".join(finetuned.VARIANTS),
        conda:
            "../../envs/training.yaml"
        threads: training_threads
        resources:
            mem_mb=training_memory,
            runtime=training_minutes,
            gpu=training_gpus,
            checkpoint_every=checkpoint_every,
        params:
            **asking(information_section.MEASURING_LAYERS, information_section.of_layers(settings)),
        shell:
            LAYERS_OF_EPOCHS

    rule compare_epochs:
        input:
            datasets=of_finetuned(paths.DATASET),
            traces=of_finetuned(paths.TRACE),
            layers=of_finetuned(neural.LAYERS.path),
        output:
            table=fill(neural.EPOCHS.path, size=finetuned_block["size"]),
        log:
            "logs/compare_epochs/{recipe}/{model}/{language}.log",
        benchmark:
            "benchmarks/compare_epochs/{recipe}/{model}/{language}.tsv"
        conda:
            "../../envs/analysis.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=30,
        params:
            **made_by("palimpsest.information.epochs:epochs_table"),
            start=THRESHOLDS["start"],
            stand_in_gap=THRESHOLDS["stand_in_gap"],
        script:
            "../scripts/make.py"

    # Activations of the user's own; `language` in its paths is the name of a group of models.
    use rule measure_neurons as measure_given_activations with:
        input:
            files=files_of_group,
            scores=scores_of_group,
        output:
            **{kind.name: kind.path for kind in neural.OF_GIVEN},
        log:
            "logs/measure_given_activations/{language}.log",
        benchmark:
            "benchmarks/measure_given_activations/{language}.tsv"
        params:
            **made_by("palimpsest.information.activation_scores:of_group"),
            **values_of("information", "bins", "neighbours", "pairs"),
            models=models_of_group,

    # Encoders that classify texts; `language` in their paths is the name of a study.
    rule compare_encoders:
        input:
            scores=neural.ENCODER_SCORES.path,
            layers=layers_of_study,
        output:
            table=neural.ENCODERS.path,
        log:
            "logs/compare_encoders/{language}.log",
        benchmark:
            "benchmarks/compare_encoders/{language}.tsv"
        conda:
            "../../envs/analysis.yaml"
        threads: 1
        resources:
            mem_mb=4000,
            runtime=30,
        params:
            **made_by("palimpsest.information.encoders.scores:encoders_table"),
        script:
            "../scripts/make.py"

    use rule compare_encoders as label_texts with:
        input:
            file=texts_of_study,
        output:
            table=neural.LABELLED.path,
        log:
            "logs/label_texts/{language}.log",
        benchmark:
            "benchmarks/label_texts/{language}.tsv"
        params:
            **made_by("palimpsest.information.encoders.labelled:labelled"),
            study=of_study("texts"),

    rule finetune_encoder:
        input:
            records=neural.LABELLED.path,
            model=local_encoder,
            pretrained=ancient(made_encoder),
        output:
            cls=f"{neural.OF_ENCODER}/{neural.CLS}.npz",
            mean=f"{neural.OF_ENCODER}/{neural.MEAN}.npz",
            answers=neural.ENCODER_ANSWERS.path,
            run=neural.ENCODER_RUNS.path,
        log:
            "logs/finetune_encoder/{language}/{variant}-seed{seed}.log",
        benchmark:
            "benchmarks/finetune_encoder/{language}/{variant}-seed{seed}.tsv"
        conda:
            "../../envs/training.yaml"
        threads: 1
        resources:
            mem_mb=6000,
            runtime=600,
            gpu=gpus_of_checkpoints,
        params:
            how=how_to_finetune_encoder,
            script=FINETUNE_ENCODER_SCRIPT,
        shell:
            FINETUNE_ENCODER

    use rule compare_encoders as score_encoders with:
        input:
            answers=of_encoders(neural.ENCODER_ANSWERS.path),
            runs=of_encoders(neural.ENCODER_RUNS.path),
            cls=of_encoders(rules.finetune_encoder.output.cls),
            mean=of_encoders(rules.finetune_encoder.output.mean),
        output:
            table=neural.ENCODER_SCORES.path,
        log:
            "logs/score_encoders/{language}.log",
        benchmark:
            "benchmarks/score_encoders/{language}.tsv"
        params:
            **made_by("palimpsest.information.encoders.scores:scores_table"),
            interventions=ENCODERS_COMPARED,
