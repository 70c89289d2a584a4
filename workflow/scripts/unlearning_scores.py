"""Forgetting quality, utility and cost of every unlearning method, and effects of evaluation."""

from palimpsest import tables
from palimpsest.script_job import script_job
from palimpsest.unlearning.analyses import agreement, hardness
from palimpsest.unlearning.confidence_samples import confidence_samples
from palimpsest.unlearning.equality import refuse_equal
from palimpsest.unlearning.jobs import SCORED
from palimpsest.unlearning.samples import problem_of
from palimpsest.unlearning.scores import evaluate, scoring_of

if __name__ == "__main__":
    with script_job(snakemake):
        problem = problem_of(snakemake)
        methods = problem.methods(snakemake.input.unlearned, snakemake.input.models)
        scoring = scoring_of(snakemake, problem)
        found = evaluate(problem, refuse_equal(problem, methods), *scoring)
        found["unlearning_hardness"] = hardness(problem, found["epsilons"])
        found["unlearning_agreement"] = agreement(problem, found["epsilons"])
        methods = problem.methods(snakemake.input.unlearned, snakemake.input.models)
        found["unlearning_confidences"] = confidence_samples(
            problem, methods, scoring[0], found["unlearning_hardness"]
        )
        for kind in SCORED:
            tables.write(snakemake.output[kind.name], found[kind.name], kind)
