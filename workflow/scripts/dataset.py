"""Variants of a language's dataset for one size and seed."""

from pathlib import Path

from palimpsest import tables
from palimpsest.datasets.build import Sampler, build
from palimpsest.datasets.kinds import STRINGS, TARGETS
from palimpsest.languages import Grammar
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        given = snakemake.input
        counterpart, targets = given.get("counterpart"), given.get("targets")
        sampler = Sampler(
            language=snakemake.wildcards.language,
            grammar=Grammar.from_file(given.grammar),
            seed=int(snakemake.wildcards.seed),
            counterpart=Grammar.from_file(counterpart) if counterpart else None,
        )
        for path in snakemake.output:
            strings = build(
                sampler,
                variant=Path(path).parent.name,
                size=int(snakemake.wildcards.size),
                test_size=snakemake.params.test_size,
                predict_end=snakemake.params.predict_end,
                targets=tables.read(targets, TARGETS) if targets else None,
            )
            tables.write(path, strings, STRINGS)
