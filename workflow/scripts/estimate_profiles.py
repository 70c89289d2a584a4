"""Memorisation profiles of the streams of one model, one for each seed."""

from palimpsest import manifests, tables, traces
from palimpsest.datasets.kinds import STRINGS
from palimpsest.profiles.kinds import (
    PERSISTENCE,
    POOLED_PERSISTENCE,
    POOLED_PROFILE,
    PROFILE,
)
from palimpsest.profiles.measured import Stream
from palimpsest.profiles.profile import pooled_tables, tables_of_seeds
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        given = snakemake.input
        files = zip(given.traces, given.datasets, given.manifests, strict=True)
        streams = [
            Stream.of(traces.read(trace), tables.read(dataset, STRINGS), manifests.read(manifest))
            for trace, dataset, manifest in files
        ]
        size = snakemake.params.panel
        made = {**tables_of_seeds(streams, size), **pooled_tables(streams, size)}
        for kind in (PROFILE, PERSISTENCE, POOLED_PROFILE, POOLED_PERSISTENCE):
            tables.write(snakemake.output[kind.name], made[kind.name], kind)
