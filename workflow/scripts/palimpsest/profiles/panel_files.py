"""Panels of the configuration: their files, the names of their columns, and their order.

Source: Causal Estimation of Memorisation Profiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.named_files import named_files, unusable_files
from palimpsest.configuration.settings import Settings
from palimpsest.profiles.panel_columns import LOSS, OUTCOME

KEY = "profiles/panels"
PARAMETERS, OTHER_OUTCOMES = "parameters", "other_outcomes"


@dataclass(frozen=True)
class PanelFile:
    """A panel of the configuration.

    `columns` are the file's own names of the columns. `other_outcomes` are further columns of
    outcomes, each estimated by itself. `parameters` is the size of the model, if given.
    """

    name: str
    file: str
    columns: Mapping[str, str] = field(default_factory=dict)
    other_outcomes: tuple[str, ...] = ()
    parameters: float | None = None


def panels(block: dict) -> dict[str, PanelFile]:
    """The panels of the block `profiles` by name, from the smallest model to the largest.

    Without the key `parameters`, they are in the order of the configuration.
    """
    found = []
    for name, named in named_files(block["panels"]).items():
        columns = dict(named.columns)
        others = tuple(columns.pop(OTHER_OUTCOMES, ()))
        found.append(PanelFile(name, named.file, columns, others, columns.pop(PARAMETERS, None)))
    if all(panel.parameters is not None for panel in found):
        found.sort(key=lambda panel: panel.parameters)
    return {panel.name: panel for panel in found}


def are_a_study(block: dict) -> bool:
    """Whether there are several panels, which are then compared with each other."""
    return len(panels(block)) > 1


def mistakes(settings: Settings) -> Iterator[Mistake]:
    """Panels that are not there, whose names cannot be in paths, or that have no order."""
    known = panels(settings.block("profiles"))
    yield from unusable_files(KEY, known, "a panel")
    for name, panel in known.items():
        if OUTCOME in panel.columns and LOSS in panel.columns:
            yield Mistake(
                f"{KEY}/{name}", f"{OUTCOME} and {LOSS} are both given; name one of the two columns"
            )
    sized = [name for name, panel in known.items() if panel.parameters is not None]
    for name in known if sized else ():
        if name not in sized:
            yield Mistake(
                f"{KEY}/{name}",
                f"the key {PARAMETERS!r} is missing, and {sized[0]} has it; give it to all panels, "
                "or to none: they are then in the order of the configuration, smallest first",
            )
