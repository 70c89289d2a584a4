"""Memorisation of the forget strings before and after unlearning."""

from palimpsest import tables
from palimpsest.script_job import script_job
from palimpsest.unlearning.kinds import MEMORISATION
from palimpsest.unlearning.memorised import memorisation
from palimpsest.unlearning.samples import RETAIN, problem_of, read_trained

if __name__ == "__main__":
    with script_job(snakemake):
        given, asked = snakemake.input, snakemake.params
        problem = problem_of(snakemake)
        forgotten = problem.string_ids[problem.forget]
        table = memorisation(
            problem,
            problem.methods(given.unlearned, given.models),
            read_trained(given.retrained, RETAIN, forgotten, "all"),
            asked.loss_threshold,
            asked.accuracy_threshold,
        )
        tables.write(snakemake.output.table, table, MEMORISATION)
