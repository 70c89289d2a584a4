"""The sections, in the report's order, and what they have all together.

A section is added by one line here and one in the Snakefile. Only light modules are imported:
Snakemake reads this while it builds its graph of jobs.
"""

from importlib import import_module

from palimpsest.datasets.figures import LANGUAGE
from palimpsest.datasets.kinds import KINDS as DATASET_KINDS
from palimpsest.datasets.variants import VARIANTS as SHARED_VARIANTS
from palimpsest.figures.figure import Figure
from palimpsest.planning.kinds import KINDS as PLANNING_KINDS
from palimpsest.section import Section
from palimpsest.tables.claims import CLAIMS
from palimpsest.tables.kinds import Kind
from palimpsest.tables.trace import TRACE
from palimpsest.variants import Variant

NAMES = (
    "memorisation",
    "unlearning",
)
# By name: code that uses all sections is not changed by a change of one.
SECTIONS: tuple[Section, ...] = tuple(
    import_module(f"palimpsest.{name}.section").SECTION for name in NAMES
)
FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figures in ((LANGUAGE,), *(section.load("figures") for section in SECTIONS))
    for figure in figures
}
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kinds in (
        DATASET_KINDS,
        (TRACE,),
        *(section.load("kinds") for section in SECTIONS),
        (CLAIMS,),
        PLANNING_KINDS,
    )
    for kind in kinds
}
VARIANTS: tuple[Variant, ...] = (
    *SHARED_VARIANTS,
    *(variant for section in SECTIONS for variant in section.variants),
)
