"""The sections, in the order of the report; and the figures, kinds and interventions of all.

To add a section, add one line here and one line in the Snakefile.
"""

from collections.abc import Iterable
from importlib import import_module

from palimpsest.datasets.figures import FIGURES as LANGUAGE_FIGURES
from palimpsest.datasets.interventions import INTERVENTIONS as SHARED_INTERVENTIONS
from palimpsest.datasets.kinds import KINDS as DATASET_KINDS
from palimpsest.figures.figure import Figure
from palimpsest.interventions import Intervention
from palimpsest.planning.kinds import KINDS as PLANNING_KINDS
from palimpsest.section import Section
from palimpsest.tables.claims import CLAIMS
from palimpsest.tables.kinds import Kind
from palimpsest.tables.tokens import TOKENS
from palimpsest.tables.trace import TRACE

NAMES = (
    "memorisation",
    "unlearning",
    "profiles",
    "density",
    "information",
)
# Sections are imported by name, so that the fingerprint of code that uses all sections does not
# change when one section changes.
SECTIONS: tuple[Section, ...] = tuple(
    import_module(f"palimpsest.{name}.section").SECTION for name in NAMES
)
FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figures in (LANGUAGE_FIGURES, *(section.load("figures") for section in SECTIONS))
    for figure in figures
}
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kinds in (
        DATASET_KINDS,
        (TRACE, TOKENS),
        *(section.load("kinds") for section in SECTIONS),
        (CLAIMS,),
        PLANNING_KINDS,
    )
    for kind in kinds
}


def interventions_of(sections: Iterable[Section]) -> tuple[Intervention, ...]:
    own = (intervention for section in sections for intervention in section.interventions)
    return (*SHARED_INTERVENTIONS, *own)


INTERVENTIONS = interventions_of(SECTIONS)
