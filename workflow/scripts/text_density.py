"""Density of a text's corpus at its queries, and what it says of the model's perplexity."""

from palimpsest import tables
from palimpsest.density.bins import text_bins
from palimpsest.density.kinds import TEXT_BINS, TEXT_DENSITY, TEXT_REGRESSIONS
from palimpsest.density.regressions import regress_text
from palimpsest.density.sizes import Approximation, check_text
from palimpsest.density.text_density import read_embedded, text_density
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        given, params, made = snakemake.input, snakemake.params, snakemake.output
        asked = params.approximation
        approximation = Approximation(**asked) if asked else None
        text = read_embedded(given.segments, given.embeddings)
        name = f"density/texts/{snakemake.wildcards.language}/corpus"
        check_text(name, len(text.corpus_vectors), params.neighbours, asked)
        density = text_density(text, params.kernels, params.neighbours, approximation)
        tables.write(made.text_density, density, TEXT_DENSITY)
        tables.write(made.text_bins, text_bins(density), TEXT_BINS)
        tables.write(made.text_regressions, regress_text(density), TEXT_REGRESSIONS)
