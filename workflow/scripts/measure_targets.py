"""Memorisation of the target strings by retraining without them, beside the approximations."""

from palimpsest import tables, traces
from palimpsest.door import door
from palimpsest.memorisation.targets import target_tables

if __name__ == "__main__":
    with door(snakemake):
        measured = target_tables(
            [traces.read(path) for path in snakemake.input.with_traces],
            [tables.read(path, "strings") for path in snakemake.input.with_datasets],
            [traces.read(path) for path in snakemake.input.without_traces],
            snakemake.params.start,
            snakemake.params.loss_threshold,
            snakemake.params.accuracy_threshold,
        )
        for kind, table in measured.items():
            tables.write(snakemake.output[kind], table, kind)
