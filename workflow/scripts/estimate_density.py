"""Density of the training strings of some runs, at every string that is measured."""

from palimpsest import tables
from palimpsest.datasets.kinds import STRINGS
from palimpsest.density.densities import density_tables, embeddings_of
from palimpsest.density.kinds import DENSITY, EMBEDDINGS, NEIGHBOURS
from palimpsest.density.sizes import Approximation
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        given, params, made = snakemake.input, snakemake.params, snakemake.output
        asked = params.approximation
        approximation = Approximation(**asked) if asked else None
        files = zip(given.datasets, given.embeddings, made.density, made.neighbours, strict=True)
        for dataset, embeddings, *outputs in files:
            strings = tables.read(dataset, STRINGS)
            vectors = embeddings_of(strings, tables.read(embeddings, EMBEDDINGS))
            found = density_tables(
                snakemake.wildcards.model,
                strings,
                vectors,
                params.kernels,
                params.neighbours,
                approximation,
            )
            for path, kind in zip(outputs, (DENSITY, NEIGHBOURS), strict=True):
                tables.write(path, found[kind.name], kind)
