"""Both estimators of a memorisation profile beside the truth, by training without each cohort."""

from palimpsest import tables, traces
from palimpsest.datasets.kinds import STRINGS
from palimpsest.profiles.kinds import ESTIMATOR_ERRORS, EXACT_PROFILE, PROFILE
from palimpsest.profiles.truth import beside_truth, errors
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        given = snakemake.input
        compared = beside_truth(
            tables.read(given.profile, PROFILE),
            [traces.read(path) for path in given.traces],
            tables.read_all(given.datasets, STRINGS),
            [traces.read(path) for path in given.without],
        )
        tables.write(snakemake.output.exact_profile, compared, EXACT_PROFILE)
        tables.write(snakemake.output.estimator_errors, errors(compared), ESTIMATOR_ERRORS)
