import time


include: "functions/plan.smk"


# The plan is computed while Snakemake builds its graph of jobs; this job only writes it. The plan
# is made again each time, because it depends on finished runs, and these are not among its inputs.
rule plan:
    output:
        table=paths.PLAN,
    log:
        "logs/plan.log",
    benchmark:
        "benchmarks/plan.tsv"
    localrule: True
    conda:
        "../../envs/analysis.yaml"
    threads: 1
    resources:
        mem_mb=2000,
        runtime=10,
    params:
        make="palimpsest.planning.summary:plan_table",
        # Always another value, so that the plan is made every time
        code=lambda wildcards: time.time(),
        bill=bill_of_targets,
    script:
        "../scripts/make.py"
