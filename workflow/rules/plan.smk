import time
from types import SimpleNamespace

from palimpsest.launch import hand_on_bill, handed_bill
from palimpsest.planning.bill import Made


def bill_of_targets(wildcards):
    """The bill of what Snakemake's graph has jobs for; a job that writes it has its own graph.

    Snakemake neither records nor prints an object of this class: the bill is long.
    """
    files = [str(file) for job in workflow.dag.jobs for file in job.output]
    if files != [paths.PLAN]:
        hand_on_bill(vars(experiment.made_by(files)))
    if (made := handed_bill()) is not None:
        experiment.bill_alone(Made(**made))
    return SimpleNamespace(rows=experiment.plan, summary=experiment.plan_summary)


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
