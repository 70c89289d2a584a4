"""Other measures of forgetting: membership inference, relearning, distances and more."""

from palimpsest import tables
from palimpsest.script_job import script_job
from palimpsest.unlearning.kinds import METRICS
from palimpsest.unlearning.metrics import metrics
from palimpsest.unlearning.samples import problem_of

if __name__ == "__main__":
    with script_job(snakemake):
        problem = problem_of(snakemake)
        methods = problem.methods(snakemake.input.unlearned, snakemake.input.models)
        table = metrics(problem, methods, snakemake.params.relearn_epochs)
        tables.write(snakemake.output.table, table, METRICS)
