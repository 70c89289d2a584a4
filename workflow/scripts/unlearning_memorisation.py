"""Memorisation of the forget strings before and after unlearning."""

from palimpsest import tables
from palimpsest.door import door
from palimpsest.unlearning.memorised import memorisation
from palimpsest.unlearning.samples import RETAIN, read_problem, read_trained, setups_of

if __name__ == "__main__":
    with door(snakemake):
        given, asked = snakemake.input, snakemake.params
        problem = read_problem(
            given.originals,
            given.retrained,
            given.dataset,
            setups_of(asked.setups, asked.n, asked.repetitions, asked.pool, asked.seed),
        )
        forgotten = problem.string_ids[problem.forget]
        table = memorisation(
            problem,
            problem.methods(given.unlearned, given.models),
            read_trained(given.retrained, RETAIN, forgotten, "all"),
            asked.loss_threshold,
            asked.accuracy_threshold,
        )
        tables.write(snakemake.output.table, table, "unlearning_memorisation")
