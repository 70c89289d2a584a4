"""A language's rules, a derivation, a sample, its target strings and a summary of it."""

from palimpsest import tables
from palimpsest.corpora.files import read_grammar
from palimpsest.datasets.grammar import derivation_table, grammar_table, typical_string
from palimpsest.datasets.kinds import DERIVATION_TREE, GRAMMAR, LANGUAGE_SAMPLE, TARGETS
from palimpsest.datasets.strings import distinct_sample, summarise, target_strings
from palimpsest.script_job import script_job

SEED = 0  # of the sample; runs have their own seeds

if __name__ == "__main__":
    with script_job(snakemake):
        language = snakemake.wildcards.language
        grammar = read_grammar(snakemake.input.corpus)
        sample = distinct_sample(grammar, language, snakemake.params.sample, SEED)
        targets = target_strings(sample, snakemake.params.targets)
        derivation = derivation_table(grammar, language, typical_string(sample))
        tables.write(snakemake.output.grammar, grammar_table(grammar, language), GRAMMAR)
        tables.write(snakemake.output.derivation, derivation, DERIVATION_TREE)
        tables.write(snakemake.output.sample, sample.drop(columns="string"), LANGUAGE_SAMPLE)
        tables.write(snakemake.output.targets, targets, TARGETS)
        tables.write_json(snakemake.output.summary, summarise(grammar, language, sample))
