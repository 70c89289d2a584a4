"""What the study needs, as a table, and its totals on the terminal."""

import pandas as pd

from palimpsest import tables
from palimpsest.door import door

if __name__ == "__main__":
    with door(snakemake):
        tables.write(snakemake.output.table, pd.DataFrame(snakemake.params.rows), "plan")
        print(snakemake.params.summary)
