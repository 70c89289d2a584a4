"""The effects of copies, position and amount of data, by training again without the probes."""

from palimpsest import manifests, tables, traces
from palimpsest.datasets.kinds import STRINGS
from palimpsest.profiles.dilution_effects import dilution, dilution_effects
from palimpsest.profiles.kinds import DILUTION, DILUTION_EFFECTS
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        given = snakemake.input
        files = zip(given.traces, given.datasets, given.manifests, strict=True)
        streams = [
            (traces.read(trace), tables.read(dataset, STRINGS), manifests.read(manifest))
            for trace, dataset, manifest in files
        ]
        found = dilution(streams, [traces.read(path) for path in given.without])
        tables.write(snakemake.output.dilution, found, DILUTION)
        tables.write(snakemake.output.dilution_effects, dilution_effects(found), DILUTION_EFFECTS)
