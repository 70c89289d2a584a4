"""Write the plan of the experiment as a table, and print its totals."""

import pandas as pd

from palimpsest import tables
from palimpsest.planning.kinds import PLAN
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        # Also without any run, such as for a panel of the user alone.
        frame = pd.DataFrame(snakemake.params.rows, columns=PLAN.names)
        tables.write(snakemake.output.table, frame, PLAN)
        print(snakemake.params.summary)
