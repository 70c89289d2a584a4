"""Other measures of forgetting: membership inference, relearning, distances and more."""

from palimpsest import tables
from palimpsest.script_job import script_job
from palimpsest.unlearning.equality import refuse_equal
from palimpsest.unlearning.kinds import METRICS
from palimpsest.unlearning.metrics import metrics
from palimpsest.unlearning.samples import problem_of

if __name__ == "__main__":
    with script_job(snakemake):
        problem = problem_of(snakemake)
        given = snakemake.input.unlearned, snakemake.input.models
        methods = problem.methods(*given, with_tokens=True)
        table = metrics(problem, refuse_equal(problem, methods))
        tables.write(snakemake.output.table, table, METRICS)
