"""The points of the grids of methods of unlearning, each method's best first."""

from palimpsest import tables
from palimpsest.script_job import script_job
from palimpsest.unlearning.analyses import tuning
from palimpsest.unlearning.kinds import TUNING
from palimpsest.unlearning.samples import problem_of
from palimpsest.unlearning.scores import scoring_of

if __name__ == "__main__":
    with script_job(snakemake):
        problem = problem_of(snakemake)
        points = problem.methods(snakemake.input.unlearned, snakemake.input.models)
        scoring = scoring_of(snakemake, problem)
        table = tuning(problem, points, snakemake.params.points, *scoring)
        tables.write(snakemake.output.table, table, TUNING)
