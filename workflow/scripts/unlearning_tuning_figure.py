"""The figure of the search for settings: what every tried setting left, and its damage."""

from palimpsest import tables
from palimpsest.figures.style import save
from palimpsest.script_job import script_job
from palimpsest.unlearning.figures.tuning import unlearning_tuning
from palimpsest.unlearning.kinds import TUNING

if __name__ == "__main__":
    with script_job(snakemake):
        table = tables.read(snakemake.input.table, TUNING)
        save(unlearning_tuning(table), snakemake.output.svg)
