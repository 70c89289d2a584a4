"""One figure, from its tables."""

from palimpsest import figures
from palimpsest.door import door

if __name__ == "__main__":
    with door(snakemake):
        figures.render(snakemake.params.figure, dict(snakemake.input.items()), snakemake.output.svg)
