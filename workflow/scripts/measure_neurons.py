"""Entropy and mutual information of the neurons of some runs."""

from palimpsest import tables
from palimpsest.information.kinds import ACTIVATIONS, NEURONS, PAIRS
from palimpsest.information.measured import measured
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        made, params = snakemake.output, snakemake.params
        how = params.bins, params.neighbours, params.pairs, snakemake.threads
        files = zip(snakemake.input.activations, made.neurons, made.pairs, strict=True)
        for activations, *outputs in files:
            found = measured(tables.read(activations, ACTIVATIONS), *how)
            for path, kind in zip(outputs, (NEURONS, PAIRS), strict=True):
                tables.write(path, found[kind.name], kind)
