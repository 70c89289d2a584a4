"""How often training strings are repeated, from the datasets of one language."""

from palimpsest import tables
from palimpsest.datasets.kinds import STRINGS
from palimpsest.repetition.counting import repeated
from palimpsest.repetition.kinds import REPEATED
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        strings = tables.read_all(snakemake.input.datasets, STRINGS)
        tables.write(snakemake.output.table, repeated(strings), REPEATED)
