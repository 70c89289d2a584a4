"""What remains memorised after unlearning: memorisation, the gap that is closed, its variance."""

import numpy as np

from palimpsest import tables
from palimpsest.script_job import script_job
from palimpsest.unlearning.gap_tables import gap_tables
from palimpsest.unlearning.jobs import REMAINING
from palimpsest.unlearning.kinds import MEMORISATION, VARIANCE
from palimpsest.unlearning.memorised import memorisation
from palimpsest.unlearning.placebos import measured_strings
from palimpsest.unlearning.samples import RETAIN, problem_of, read_trained
from palimpsest.unlearning.variance import variance_table

if __name__ == "__main__":
    with script_job(snakemake):
        given, asked = snakemake.input, snakemake.params
        problem = problem_of(snakemake)
        places = np.unique(np.concatenate([places for _, places in measured_strings(problem)]))
        found = gap_tables(problem, problem.methods(given.unlearned, given.models))
        found[MEMORISATION.name] = memorisation(
            problem,
            problem.methods(given.unlearned, given.models),
            read_trained(given.retrained, RETAIN, problem.string_ids[places], "all"),
            asked.loss_threshold,
            asked.accuracy_threshold,
        )
        found[VARIANCE.name] = variance_table(
            problem, problem.methods(given.unlearned, given.models)
        )
        for kind in REMAINING:
            tables.write(snakemake.output[kind.name], found[kind.name], kind)
