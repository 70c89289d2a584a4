"""Memorisation of every training string of a group of runs, under every measure."""

from palimpsest import tables, traces
from palimpsest.door import door
from palimpsest.memorisation.runs import memorisation_tables

if __name__ == "__main__":
    with door(snakemake):
        measured = memorisation_tables(
            [traces.read(path) for path in snakemake.input.traces],
            [tables.read(path, "strings") for path in snakemake.input.datasets],
            snakemake.params.start,
            snakemake.params.loss_threshold,
            snakemake.params.accuracy_threshold,
        )
        for kind, table in measured.items():
            tables.write(snakemake.output[kind], table, kind)
