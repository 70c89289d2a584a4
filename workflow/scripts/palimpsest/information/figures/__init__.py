"""The figures of information: every file here with a `FIGURE` is one, found by its place."""

from palimpsest.figures.figure import figures_in

FIGURES = figures_in(__name__)
