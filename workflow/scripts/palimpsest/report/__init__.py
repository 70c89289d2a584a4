"""The report: one HTML file that needs nothing beside it, written from tables and figures only.

Here is the skeleton; the sections say what stands in it (`part.Part`). Every number in the report
is counted or averaged from a table that it links to. The words around the numbers explain and do
not conclude.
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
