"""Memorisation of the target strings by retraining without them, and by the approximations."""

from palimpsest import tables, traces
from palimpsest.datasets.kinds import STRINGS
from palimpsest.memorisation.kinds import AGREEMENT, TARGET_SCORES
from palimpsest.memorisation.targets import target_tables
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        measured = target_tables(
            [traces.read(path) for path in snakemake.input.with_traces],
            [tables.read(path, STRINGS) for path in snakemake.input.with_datasets],
            [traces.read(path) for path in snakemake.input.without_traces],
            snakemake.params.start,
            snakemake.params.loss_threshold,
            snakemake.params.accuracy_threshold,
            snakemake.params.stand_in_gap,
        )
        for kind in (TARGET_SCORES, AGREEMENT):
            tables.write(snakemake.output[kind.name], measured[kind.name], kind)
