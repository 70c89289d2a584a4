"""Other definitions of memorisation beside the estimates of one run."""

from palimpsest import tables, traces
from palimpsest.datasets.kinds import STRINGS
from palimpsest.profiles.kinds import CONTINUATIONS, EXACT_PROFILE, INFLUENCES, NOTIONS, PROFILE
from palimpsest.profiles.notions import beside_other_notions
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        given = snakemake.input
        found = beside_other_notions(
            tables.read(given.profile, PROFILE),
            tables.read(given.exact_profile, EXACT_PROFILE),
            tables.read_all(given.datasets, STRINGS),
            [traces.read(path) for path in given.replicates],
            tables.read_all(given.continuations, CONTINUATIONS),
            tables.read_all(given.influences, INFLUENCES),
            snakemake.params.length,
        )
        tables.write(snakemake.output.table, found, NOTIONS)
