"""How well the memorisation profile of one model predicts that of another."""

from palimpsest import tables
from palimpsest.profiles.correlation import correlations
from palimpsest.profiles.kinds import PROFILE, PROFILE_CORRELATION
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        found = correlations(tables.read_all(snakemake.input.profiles, PROFILE))
        tables.write(snakemake.output.table, found, PROFILE_CORRELATION)
