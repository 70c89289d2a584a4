"""Forgetting quality, utility and cost of every method of unlearning, and what they depend on."""

from palimpsest import tables
from palimpsest.door import door
from palimpsest.unlearning.analyses import agreement, hardness
from palimpsest.unlearning.samples import read_problem, setups_of
from palimpsest.unlearning.scores import Rules, evaluate, retraining

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
        methods = problem.methods(given.unlearned, given.models)
        found = evaluate(problem, methods, rules, cost)
        found["unlearning_hardness"] = hardness(problem, found["epsilons"])
        found["unlearning_agreement"] = agreement(problem, found["epsilons"])
        for kind, table in found.items():
            tables.write(snakemake.output[kind.removeprefix("unlearning_")], table, kind)
