"""Other measures of forgetting: membership inference, relearning, distances and more."""

from palimpsest import tables
from palimpsest.door import door
from palimpsest.unlearning.metrics import metrics
from palimpsest.unlearning.samples import read_problem, setups_of

if __name__ == "__main__":
    with door(snakemake):
        given, asked = snakemake.input, snakemake.params
        problem = read_problem(
            given.originals,
            given.retrained,
            given.dataset,
            setups_of(asked.setups, asked.n, asked.repetitions, asked.pool, asked.seed),
        )
        methods = problem.methods(given.unlearned, given.models)
        table = metrics(problem, methods, asked.relearn_epochs)
        tables.write(snakemake.output.table, table, "unlearning_metrics")
