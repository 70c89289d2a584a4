"""The figures of unlearning: every file in this folder with a `FIGURE`."""

from palimpsest.figures.figure import figures_in

FIGURES = figures_in(__name__)
