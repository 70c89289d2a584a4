"""Mixed-effects regressions of performance on leakage, density and distance."""

from palimpsest import tables
from palimpsest.density.kinds import LEAKAGE, REGRESSIONS
from palimpsest.density.regressions import regress
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        found = regress(tables.read(snakemake.input.leakage, LEAKAGE))
        tables.write(snakemake.output.table, found, REGRESSIONS)
