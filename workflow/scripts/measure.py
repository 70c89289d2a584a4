"""Memorisation of every training string of a group of runs, under every measure."""

from palimpsest import tables, traces
from palimpsest.datasets.kinds import STRINGS
from palimpsest.memorisation.kinds import AVERAGES, DATASET, LEARNING, SCORES, STARTS
from palimpsest.memorisation.runs import memorisation_tables
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        measured = memorisation_tables(
            [traces.read(path) for path in snakemake.input.traces],
            [tables.read(path, STRINGS) for path in snakemake.input.datasets],
            snakemake.params.start,
            snakemake.params.loss_threshold,
            snakemake.params.accuracy_threshold,
            snakemake.params.stand_in_gap,
        )
        for kind in (STARTS, SCORES, DATASET, LEARNING, AVERAGES):
            tables.write(snakemake.output[kind.name], measured[kind.name], kind)
