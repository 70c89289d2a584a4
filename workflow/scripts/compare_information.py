"""Means of entropy and mutual information of the runs of one model on one language."""

from palimpsest import tables
from palimpsest.information.comparison import information_table, read_runs
from palimpsest.information.kinds import INFORMATION
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        params = snakemake.params
        runs = read_runs(snakemake.input)
        found = information_table(runs, params.n_layers, params.stand_in_gap)
        tables.write(snakemake.output.table, found, INFORMATION)
