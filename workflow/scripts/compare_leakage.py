"""What leakage changes: density, performance, separation, retrieval; and density's truth."""

from palimpsest import tables
from palimpsest.density.kinds import EMBEDDINGS, OF_FACTORIAL
from palimpsest.density.leakage_study import factorial_tables, read_runs
from palimpsest.script_job import script_job

if __name__ == "__main__":
    with script_job(snakemake):
        given, shown = snakemake.input, snakemake.params.shown
        found = factorial_tables(
            list(read_runs(given)),
            [tables.read(path, EMBEDDINGS) for path in given.embeddings],
            (shown["kernel"], shown["bandwidth"]),
        )
        for kind in OF_FACTORIAL:
            tables.write(snakemake.output[kind.name], found[kind.name], kind)
