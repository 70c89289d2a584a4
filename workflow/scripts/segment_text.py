"""The segments of a text of the configuration: those of its corpus, and of its queries."""

from palimpsest import tables
from palimpsest.density.kinds import SEGMENTS
from palimpsest.density.segments import segmented, tabulated
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        cut = {"window": snakemake.params.window, "stride": snakemake.params.stride}
        corpus, queries = (
            segmented(path, **cut) for path in (snakemake.input.corpus, snakemake.input.queries)
        )
        table = tabulated(snakemake.wildcards.language, corpus, queries)
        tables.write(snakemake.output.table, table, SEGMENTS)
