"""Variants of a corpus' dataset for one size and seed."""

from palimpsest import tables
from palimpsest.corpora import read_corpus
from palimpsest.datasets.build import build
from palimpsest.datasets.kinds import STRINGS, TARGETS
from palimpsest.datasets.sampling import Sampler
from palimpsest.paths import DATASET, values_in
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        given, params = snakemake.input, snakemake.params
        counterpart, of_targets = given.get("counterpart"), given.get("targets")
        targets = tables.read(of_targets, TARGETS) if of_targets else None
        sampler = Sampler(
            language=snakemake.wildcards.language,
            corpus=read_corpus(given.corpus),
            seed=int(snakemake.wildcards.seed),
            counterpart=read_corpus(counterpart) if counterpart else None,
            split=params.split,
        )
        for path in snakemake.output:
            # A job makes several variants, and some jobs make several sizes.
            names = values_in(DATASET, path)
            variant = names["variant"]
            strings = build(
                sampler,
                variant,
                size=int(names["size"]),
                test_size=params.test_size,
                predict_end=params.predict_end,
                targets=targets,
                options={**params.get("options", {}), "forget_file": given.get("forget")},
                made_by=params.made_by[variant],
            )
            tables.write(path, strings, STRINGS)
