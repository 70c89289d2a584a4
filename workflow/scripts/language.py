"""A language's sample, its target strings and a summary of it."""

from palimpsest import tables
from palimpsest.datasets.strings import distinct_sample, summarise, target_strings
from palimpsest.door import door
from palimpsest.languages import Grammar

SEED = 0  # of the sample; runs have their own seeds

if __name__ == "__main__":
    with door(snakemake):
        language = snakemake.wildcards.language
        grammar = Grammar.from_file(snakemake.input.grammar)
        sample = distinct_sample(grammar, language, snakemake.params.sample, SEED)
        targets = target_strings(sample, snakemake.params.targets)
        tables.write(snakemake.output.sample, sample.drop(columns="string"), "language_sample")
        tables.write(snakemake.output.targets, targets, "targets")
        tables.write_json(snakemake.output.summary, summarise(grammar, language, sample))
