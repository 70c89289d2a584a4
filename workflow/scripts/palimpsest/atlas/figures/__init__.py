"""The figures of the atlas."""

from palimpsest.figures.figure import figures_in

FIGURES = figures_in(__name__)
