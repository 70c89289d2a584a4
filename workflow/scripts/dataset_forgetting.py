"""A train set with a part to forget, and the same set without it."""

from pathlib import Path

from palimpsest import tables
from palimpsest.datasets.build import Sampler
from palimpsest.datasets.forgetting import build_forgetting, read_forget_set
from palimpsest.datasets.kinds import STRINGS
from palimpsest.languages import Grammar
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        given = snakemake.params
        sampler = Sampler(
            language=snakemake.wildcards.language,
            grammar=Grammar.from_file(snakemake.input.grammar),
            seed=int(snakemake.wildcards.seed),
        )
        forget = snakemake.input.get("forget")
        variants = build_forgetting(
            sampler,
            size=int(snakemake.wildcards.size),
            test_size=given.test_size,
            validation_size=given.validation,
            predict_end=given.predict_end,
            groups=given.groups,
            share=given.share,
            forget=read_forget_set(forget) if forget else None,
        )
        for path in snakemake.output:
            tables.write(path, variants[Path(path).parent.name], STRINGS)
