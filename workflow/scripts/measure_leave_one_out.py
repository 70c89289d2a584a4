"""Memorisation of every training string by retraining without it, beside the approximations."""

from palimpsest import tables, traces
from palimpsest.door import door
from palimpsest.memorisation.leave_one_out import leave_one_out_tables

if __name__ == "__main__":
    with door(snakemake):
        measured = leave_one_out_tables(
            [traces.read(path) for path in snakemake.input.traces],
            [tables.read(path, "strings") for path in snakemake.input.datasets],
            (traces.read_all(path) for path in snakemake.input.left_out),
            snakemake.params.start,
        )
        for kind, table in measured.items():
            tables.write(snakemake.output[kind], table, kind)
