from snakemake.utils import min_version

min_version("9.0")


configfile: "config/config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/languages.smk"
include: "workflow/rules/datasets.smk"
include: "workflow/rules/training.smk"
include: "workflow/rules/memorisation.smk"
include: "workflow/rules/figures.smk"
include: "workflow/rules/report.smk"


localrules:
    all,
    languages,
    datasets,
    finetune,
    memorisation,
    figures,


rule all:
    default_target: True
    input:
        "results/report.html",


rule languages:
    input:
        language_tables("summary.json"),
        language_figures(),


rule datasets:
    input:
        all_datasets(),


rule finetune:
    input:
        all_traces(),


rule memorisation:
    input:
        all_memorisation_tables(),
        study_tables(),


rule figures:
    input:
        language_figures(),
        study_figures(),


rule disagreement:
    input:
        study_outputs("disagreement"),


rule tradeoff:
    input:
        study_outputs("tradeoff"),


rule frequency:
    input:
        study_outputs("frequency"),


rule deduplication:
    input:
        study_outputs("deduplication"),


rule training_size:
    input:
        study_outputs("training_size"),


rule model_size:
    input:
        study_outputs("model_size"),


rule report:
    input:
        "results/report.html",
