"""The report: pages, and one self-contained HTML file, made only from tables and figures.

This package has the frame of the report; each section adds its part (`part.Part`). Every number in
the report is counted or averaged from a table to which the report links. The text explains the
numbers, but draws no conclusions.
"""

from palimpsest.lazy_import import lazy_names

MODULES = {
    "Chapter": "part",
    "Part": "part",
    "FigureEntry": "figures",
    "entries": "figures",
    "render": "page",
}
__all__ = list(MODULES)
__getattr__ = lazy_names(__name__, MODULES)
