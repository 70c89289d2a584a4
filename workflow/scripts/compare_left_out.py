"""What leaving one production out of the training strings changes, by production."""

from palimpsest import tables
from palimpsest.corpora import read_corpus
from palimpsest.density.kinds import LEFT_OUT
from palimpsest.density.leakage_study import left_out_of_seeds, read_runs
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        given, shown = snakemake.input, snakemake.params.shown
        found = left_out_of_seeds(
            list(read_runs(given)),
            read_corpus(given.corpus),
            (shown["kernel"], shown["bandwidth"]),
        )
        tables.write(snakemake.output.table, found, LEFT_OUT)
