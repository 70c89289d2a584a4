# The bill of what Snakemake's graph of jobs makes.
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
