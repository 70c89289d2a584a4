include: "functions/state.smk"


# Both rules run whenever a user asks for them, because they have no output. They have no benchmark,
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
        state=paths.STATE,
        models=lookup("models_table", within=config),
        wanted=wanted_runs,
        unfinished=unfinished_jobs,
        sections=sections_with_state,
        delete=False,
    script:
        "../scripts/state.py"


use rule stale_state as remove_stale_state with:
    log:
        "logs/remove_stale_state.log",
    params:
        state=paths.STATE,
        models=lookup("models_table", within=config),
        wanted=wanted_runs,
        unfinished=unfinished_jobs,
        sections=sections_with_state,
        delete=True,
