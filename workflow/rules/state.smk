include: "functions/state.smk"


# These rules run whenever a user asks for them, because they have no output. They have no benchmark,
# either: Snakemake counts a benchmark as an output.
rule stale_state:
    log:
        "logs/stale_state.log",
    localrule: True
    conda:
        "../../envs/training.yaml"
    threads: 1
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        **made_by("palimpsest.jobs.inventory:stale_state"),
        state=paths.STATE,
        models=lookup("models_table", within=config),
        wanted=wanted_runs,
        unfinished=unfinished_jobs,
        sections=experiment.sections_with_state,
        delete=False,
    script:
        "../scripts/make.py"


use rule stale_state as remove_stale_state with:
    log:
        "logs/remove_stale_state.log",
    localrule: True
    params:
        delete=True,


# What claims, figures and the report of another configuration left in the folder is moved, and never
# deleted. Its runs and its state stay: the other configuration may go on with them.
rule set_leftovers_apart:
    log:
        "logs/set_leftovers_apart.log",
    localrule: True
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        **made_by("palimpsest.ends.leftovers:account"),
        files=of_experiment("leftovers"),
        runs=of_experiment("other_runs"),
    script:
        "../scripts/make.py"


# Results of earlier versions are kept: only their paths have changed.
rule rename_results:
    log:
        "logs/rename_results.log",
    localrule: True
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        **made_by("palimpsest.renamed_results:rename"),
        folders=folders_of_recipes,
    script:
        "../scripts/make.py"
