"""Whether strings with more support by other training strings are memorised earlier."""

import pandas as pd

from palimpsest import tables
from palimpsest.density.kinds import MEMORISED
from palimpsest.density.leakage_study import read_runs
from palimpsest.density.memorised import memorised_table
from palimpsest.memorisation.kinds import STARTS
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        params = snakemake.params
        rule = params.stand_in_gap, params.start, params.loss_threshold, params.accuracy_threshold
        starts = dict(list(tables.read(snakemake.input.starts, STARTS).groupby("seed")))
        found = [memorised_table(run, starts[run.seed], rule) for run in read_runs(snakemake.input)]
        tables.write(snakemake.output.table, pd.concat(found, ignore_index=True), MEMORISED)
