"""Set apart the figures and tables of other configurations."""

from palimpsest.ends.leftovers import account
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        print(*account(snakemake.params.files, snakemake.params.runs), sep="\n")
