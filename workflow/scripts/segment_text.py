"""The segments of a text of the configuration: those of its corpus, and of its queries."""

from palimpsest import tables
from palimpsest.density.kinds import SEGMENTS
from palimpsest.density.segments import say_duplicates, segmented, tabulated
from palimpsest.density.sizes import check_text
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        params = snakemake.params
        cut = {"window": params.window, "stride": params.stride, "field": params.field}
        corpus, queries = (
            segmented(path, **cut) for path in (snakemake.input.corpus, snakemake.input.queries)
        )
        # From the configuration, and not from parameters: these numbers change no segment, so a
        # change of them must not cut and embed all texts again.
        asked, name = snakemake.config["density"], snakemake.wildcards.language
        n = len(corpus.corpus.strings)
        check_text(f"density/texts/{name}/corpus", n, asked["neighbours"], asked["approximation"])
        say_duplicates(f"density/texts/{name}", corpus, queries)
        table = tabulated(name, corpus, queries)
        tables.write(snakemake.output.table, table, SEGMENTS)
