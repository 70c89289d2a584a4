"""The figures of unlearning: every file here with a `FIGURE` is one, found by its place.

Only modules that load fast are imported, because Snakemake reads this folder before it builds its
graph of jobs.
"""

from palimpsest.figures.figure import figures_in

FIGURES = figures_in(__name__, __path__)
