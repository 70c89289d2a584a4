"""Write the plan of the experiment as a table, and print its totals."""

import pandas as pd

from palimpsest import tables
from palimpsest.planning.kinds import PLAN
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        tables.write(snakemake.output.table, pd.DataFrame(snakemake.params.rows), PLAN)
        print(snakemake.params.summary)
