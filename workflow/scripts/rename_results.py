"""Rename the results of versions whose paths did not name the recipe."""

from palimpsest.renamed_results import rename
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        print(*rename(snakemake.params.files, snakemake.params.recipes), sep="\n")
