"""A language's sample, its target strings and a summary of it."""

from palimpsest import tables
from palimpsest.corpora.files import read_grammar
from palimpsest.datasets.kinds import LANGUAGE_SAMPLE, TARGETS
from palimpsest.datasets.strings import distinct_sample, summarise, target_strings
from palimpsest.script_job import script_job

SEED = 0  # of the sample; runs have their own seeds

if __name__ == "__main__":
    with script_job(snakemake):
        language = snakemake.wildcards.language
        grammar = read_grammar(snakemake.input.corpus)
        sample = distinct_sample(grammar, language, snakemake.params.sample, SEED)
        targets = target_strings(sample, snakemake.params.targets)
        tables.write(snakemake.output.sample, sample.drop(columns="string"), LANGUAGE_SAMPLE)
        tables.write(snakemake.output.targets, targets, TARGETS)
        tables.write_json(snakemake.output.summary, summarise(grammar, language, sample))
