"""One figure, from its tables."""

from palimpsest.figures.render import render
from palimpsest.script_job import script_job
from palimpsest.sections import FIGURES

if __name__ == "__main__":
    with script_job(snakemake):
        figure = FIGURES[snakemake.wildcards.figure]
        render(figure, dict(snakemake.input.items()), snakemake.output.svg)
