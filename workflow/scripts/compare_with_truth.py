"""How well each estimate of density orders strings as the language's exact probabilities do."""

import pandas as pd

from palimpsest import tables
from palimpsest.density.kinds import TRUTH
from palimpsest.density.leakage_study import read_runs
from palimpsest.density.truth import truth_table
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        found = [truth_table(run) for run in read_runs(snakemake.input)]
        tables.write(snakemake.output.table, pd.concat(found, ignore_index=True), TRUTH)
