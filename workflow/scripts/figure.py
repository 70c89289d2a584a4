"""One figure, from its table."""

from palimpsest import figures
from palimpsest.door import door

if __name__ == "__main__":
    with door(snakemake):
        figures.render(
            snakemake.params.figure,
            snakemake.input.table,
            snakemake.output.svg,
            snakemake.input.get("summary"),
        )
