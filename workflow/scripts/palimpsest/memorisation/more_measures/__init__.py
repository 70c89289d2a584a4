"""More measures: every file of this folder with a `MEASURE` is one, found by its place."""

from palimpsest.lazy_import import declared_in
from palimpsest.memorisation.measures import Measure

MORE: list[Measure] = declared_in(__name__, "MEASURE")
