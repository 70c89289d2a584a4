"""Memorisation of training strings by retraining without them, and by the approximations."""

from palimpsest import tables, traces
from palimpsest.datasets.kinds import STRINGS
from palimpsest.memorisation.kinds import APPROXIMATION, LEAVE_ONE_OUT
from palimpsest.memorisation.leave_one_out import leave_one_out_tables
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        again = snakemake.input.again
        measured = leave_one_out_tables(
            [traces.read(path) for path in snakemake.input.traces],
            [tables.read(path, STRINGS) for path in snakemake.input.datasets],
            (traces.read_all(path) for path in snakemake.input.left_out),
            snakemake.params.start,
            snakemake.params.stand_in_gap,
            (traces.read_all(path) for path in again) if again else None,
            snakemake.params.counterpart,
        )
        for kind in (LEAVE_ONE_OUT, APPROXIMATION):
            tables.write(snakemake.output[kind.name], measured[kind.name], kind)
