from snakemake.utils import min_version

min_version("9.27")


include: "workflow/rules/start.smk"
include: "workflow/rules/common.smk"
include: "workflow/rules/plan.smk"
include: "workflow/rules/corpora.smk"
include: "workflow/rules/pretrained.smk"
include: "workflow/rules/training.smk"
include: "workflow/rules/state.smk"
include: "workflow/rules/results.smk"
# The sections
include: "workflow/rules/memorisation.smk"
include: "workflow/rules/unlearning.smk"
include: "workflow/rules/profiles.smk"
include: "workflow/rules/density.smk"
include: "workflow/rules/information.smk"
include: "workflow/rules/records.smk"
include: "workflow/rules/audit.smk"
include: "workflow/rules/atlas.smk"


for rules_of_section in experiment.rules_of_extensions:

    include: rules_of_section


rule all:
    default_target: True
    input:
        # All files, including those that the report does not read, so that missing ones are made.
        experiment.datasets,
        rules.finetune.input,
        *map(delivered, experiment.outputs),
        rules.headline.output,
        rules.claims.output,
        rules.report.input,
    localrule: True
