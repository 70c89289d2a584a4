"""The sections, in the order of the report; and the figures, kinds and interventions of all.

To add a section, add one line here and one line in the Snakefile. Those of extensions follow.
"""

from collections.abc import Iterable, Iterator
from importlib import import_module

from palimpsest import extensions
from palimpsest.corpora.kinds import KINDS as CORPUS_KINDS
from palimpsest.datasets.figures import FIGURES as LANGUAGE_FIGURES
from palimpsest.datasets.interventions import INTERVENTIONS as SHARED_INTERVENTIONS
from palimpsest.datasets.kinds import KINDS as DATASET_KINDS
from palimpsest.errors import UserError
from palimpsest.figures.figure import Figure
from palimpsest.interventions import Intervention
from palimpsest.planning.kinds import KINDS as PLANNING_KINDS
from palimpsest.section import Section
from palimpsest.tables.claims import CLAIMS
from palimpsest.tables.headline import HEADLINE
from palimpsest.tables.kinds import Kind
from palimpsest.tables.tokens import TOKENS
from palimpsest.tables.trace import TRACE

NAMES = (
    "memorisation",
    "unlearning",
    "profiles",
    "density",
    "information",
    "records",
    "audit",
    "atlas",
)


# Sections are imported by name, so that the fingerprint of code that uses all sections does not
# change when one section changes.
def _section(name: str) -> Section:
    module = import_module(f"palimpsest.{name}.section")
    section = getattr(module, "SECTION", None)
    if not isinstance(section, Section) or section.name != name:
        raise UserError(f"{module.__file__}: SECTION is no Section named {name}")
    return section


SECTIONS: tuple[Section, ...] = tuple(map(_section, (*NAMES, *extensions.sections())))


def by_name(declared: Iterable[Figure | Kind]) -> dict[str, Figure | Kind]:
    """What has a name, by its name. Raises `UserError` for a name that is declared twice."""
    found = {}
    for item in declared:
        if found.setdefault(item.name, item) is not item:
            raise UserError(f"{item.name}: two figures or kinds have this name; rename yours")
    return found


def _figures() -> Iterator[Figure]:
    yield from LANGUAGE_FIGURES
    for section in SECTIONS:
        yield from section.figures


def _kinds() -> Iterator[Kind]:
    yield from (*CORPUS_KINDS, *DATASET_KINDS, TRACE, TOKENS)
    for section in SECTIONS:
        yield from section.load("kinds")
    yield from (HEADLINE, CLAIMS, *PLANNING_KINDS)


FIGURES: dict[str, Figure] = by_name(_figures())
KINDS: dict[str, Kind] = by_name(_kinds())


def interventions_of(sections: Iterable[Section]) -> tuple[Intervention, ...]:
    own = (intervention for section in sections for intervention in section.interventions)
    return (*SHARED_INTERVENTIONS, *own)


INTERVENTIONS = interventions_of(SECTIONS)
