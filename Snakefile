from snakemake.utils import min_version

min_version("9.27")


include: "workflow/rules/start.smk"
include: "workflow/rules/common.smk"
include: "workflow/rules/plan.smk"
include: "workflow/rules/corpora.smk"
include: "workflow/rules/training.smk"
include: "workflow/rules/state.smk"
include: "workflow/rules/results.smk"
# The sections
include: "workflow/rules/memorisation.smk"
include: "workflow/rules/unlearning.smk"


rule all:
    default_target: True
    input:
        # The report reads some of these only; a file of another that is not there is made as well.
        experiment.datasets,
        rules.finetune.input,
        *map(delivered, experiment.outputs),
        rules.claims.output,
        rules.report.input,
    localrule: True
