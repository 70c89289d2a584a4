"""The points of the grids of methods of unlearning, each method's best first."""

from palimpsest import tables
from palimpsest.door import door
from palimpsest.unlearning.analyses import tuning
from palimpsest.unlearning.samples import read_problem, setups_of
from palimpsest.unlearning.scores import Rules, retraining

if __name__ == "__main__":
    with door(snakemake):
        given, asked = snakemake.input, snakemake.params
        problem = read_problem(
            given.originals,
            given.retrained,
            given.dataset,
            setups_of(asked.setups, asked.n, asked.repetitions, asked.pool, asked.seed),
        )
        rules = Rules(
            asked.confidence, asked.thresholds, asked.delta, asked.bin_width, asked.cutoff
        )
        cost = retraining(problem, given.manifests, asked.epochs, asked.batch_size)
        points = problem.methods(given.unlearned, given.models)
        table = tuning(problem, points, asked.points, rules, cost)
        tables.write(snakemake.output.table, table, "unlearning_tuning")
