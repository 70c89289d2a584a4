from snakemake.utils import min_version

min_version("9.27")


include: "workflow/rules/files.smk"


configfile: "config/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/common_unlearning.smk"
include: "workflow/rules/plan.smk"
include: "workflow/rules/languages.smk"
include: "workflow/rules/datasets.smk"
include: "workflow/rules/training.smk"
include: "workflow/rules/state.smk"
include: "workflow/rules/memorisation.smk"
include: "workflow/rules/unlearning.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"


localrules:
    all,
    plan,
    languages,
    datasets,
    finetune,
    stale_state,
    remove_stale_state,
    memorisation,
    unlearning,
    figures,
    report,
    disagreement,
    exact,
    tradeoff,
    frequency,
    deduplication,
    training_size,
    model_size,


rule languages:
    input:
        expand(LANGUAGE, language=study.all_languages, name=["sample.parquet", "summary.json"]),
        figures("language", study.all_languages),


rule datasets:
    input:
        of_groups(DATASET, study.dataset_groups),
        forgetting_datasets(),


rule finetune:
    input:
        trained_files(),
        trained_draws(),


rule memorisation:
    input:
        memorisation_tables(),
        of_studies(study_tables),


rule unlearning:
    input:
        unlearned_files(),
        unlearning_tables(),
        unlearning_figures(),


rule figures:
    input:
        all_figures(),
        unlearning_figures(),


rule report:
    input:
        "results/report.html",


rule disagreement:
    input:
        study_tables("disagreement"),
        study_figures("disagreement"),


rule exact:
    input:
        study_tables("exact"),
        study_figures("exact"),


rule tradeoff:
    input:
        study_tables("tradeoff"),
        study_figures("tradeoff"),


rule frequency:
    input:
        study_tables("frequency"),
        study_figures("frequency"),


rule deduplication:
    input:
        study_tables("deduplication"),
        study_figures("deduplication"),


rule training_size:
    input:
        study_tables("training_size"),
        study_figures("training_size"),


rule model_size:
    input:
        study_tables("model_size"),
        study_figures("model_size"),


rule all:
    default_target: True
    input:
        # The report reads some of these only; a file of another that is not there is made as well.
        rules.languages.input,
        rules.datasets.input,
        rules.finetune.input,
        rules.memorisation.input,
        rules.unlearning.input,
        rules.figures.input,
        "results/claims.parquet",
        rules.report.input,
