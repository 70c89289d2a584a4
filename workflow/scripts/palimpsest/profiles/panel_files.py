"""Panels of the configuration: their files, the names of their columns, and their order.

Source: Causal Estimation of Memorisation Profiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.named_files import NamedFile, unusable_files
from palimpsest.configuration.settings import Settings
from palimpsest.models.table import NAME, NAMES_ARE
from palimpsest.profiles import kinds, panel_checkpoints
from palimpsest.profiles.panel_checkpoints import CHECKPOINTS, Measured
from palimpsest.profiles.panel_columns import LOSS, OUTCOME, PANEL, check_head

KEY = "profiles/panels"
FILE, PARAMETERS, OTHER_OUTCOMES = "file", "parameters", "other_outcomes"


@dataclass(frozen=True)
class PanelFile:
    """A panel of the configuration.

    `columns` are the file's own names of the columns. `other_outcomes` are further columns of
    outcomes, each estimated by itself. `parameters` is the size of the model, if given. `measured`
    says from which checkpoints the file is made, if it is.
    """

    name: str
    file: str
    columns: Mapping[str, str] = field(default_factory=dict)
    other_outcomes: tuple[str, ...] = ()
    parameters: float | None = None
    measured: Measured | None = None


def panels(block: dict) -> dict[str, PanelFile]:
    """The panels of the block `profiles` by name, from the smallest model to the largest.

    Without the key `parameters`, they are in the order of the configuration.
    """
    found = [_panel(name, asked) for name, asked in (block["panels"] or {}).items()]
    if all(panel.parameters is not None for panel in found):
        found.sort(key=lambda panel: panel.parameters)
    return {panel.name: panel for panel in found}


def _panel(name: str, asked: str | Mapping) -> PanelFile:
    """A panel of the configuration, which is a path or a block."""
    values = {FILE: asked} if isinstance(asked, str) else dict(asked)
    size = values.pop(PARAMETERS, None)
    if CHECKPOINTS in values:
        file = kinds.MEASURED_PANEL.path.format(language=name)
        columns = {OUTCOME: kinds.LOG_LIKELIHOOD}
        others = (kinds.TOKEN_ACCURACY, kinds.NEGATIVE_RANK)
        return PanelFile(name, file, columns, others, size, panel_checkpoints.measured(values))
    others = tuple(values.pop(OTHER_OUTCOMES, ()))
    return PanelFile(name, values.pop(FILE, ""), values, others, size)


def panels_of(settings: Settings) -> dict[str, PanelFile]:
    """As `panels`, where a name of the table of models stands for its id."""
    return panels({"panels": _with_ids(settings)})


def _with_ids(settings: Settings) -> dict:
    asked = settings.block("profiles")["panels"] or {}
    return {
        name: panel_checkpoints.with_ids(settings, one)
        if isinstance(one, dict) and CHECKPOINTS in one
        else one
        for name, one in asked.items()
    }


def are_a_study(block: dict) -> bool:
    """Whether there are several panels, which are then compared with each other."""
    return len(panels(block)) > 1


def mistakes(settings: Settings) -> Iterator[Mistake]:
    """Panels that are not there, whose names cannot be in paths, or that have no order."""
    block = settings.block("profiles")
    known = panels(block)
    given = {n: NamedFile(n, one.file) for n, one in known.items() if one.file and not one.measured}
    yield from unusable_files(KEY, given, "a panel", check=lambda one: _check_head(known[one.name]))
    for name, panel in known.items():
        at = f"{KEY}/{name}"
        if OUTCOME in panel.columns and LOSS in panel.columns:
            yield Mistake(at, f"{OUTCOME} and {LOSS} are both given; name one of the two columns")
        asked = block["panels"][name]
        if panel.measured is not None:
            yield from _measured(settings, at, name, asked)
            continue
        if not panel.file:
            yield Mistake(at, f"the key {FILE!r} is missing, or {CHECKPOINTS!r} in its place")
        elif others := [key for key in panel.columns if key in panel_checkpoints.KEYS]:
            yield Mistake(
                f"{at}/{others[0]}", f"is for a panel made from {CHECKPOINTS}, not a file"
            )
    yield from _sizes(known)


def _check_head(panel: PanelFile) -> None:
    if not (OUTCOME in panel.columns and LOSS in panel.columns):  # which is another mistake
        known = {key: own for key, own in panel.columns.items() if key in (*PANEL.names, LOSS)}
        check_head(panel.file, known, panel.other_outcomes)


def _measured(settings: Settings, at: str, name: str, asked: Mapping) -> Iterator[Mistake]:
    if not NAME.fullmatch(name):
        yield Mistake(at, f"is not a name; allowed are {NAMES_ARE}")
    for key in asked:
        if key not in (*panel_checkpoints.KEYS, PARAMETERS):
            yield Mistake(f"{at}/{key}", f"is for a panel from a file, not from {CHECKPOINTS}")
    yield from panel_checkpoints.mistakes(settings, at, asked)


def _sizes(known: Mapping[str, PanelFile]) -> Iterator[Mistake]:
    """Panels without a size, beside others that have one."""
    sized = [name for name, panel in known.items() if panel.parameters is not None]
    for name in known if sized else ():
        if name not in sized:
            yield Mistake(
                f"{KEY}/{name}",
                f"the key {PARAMETERS!r} is missing, and {sized[0]} has it; give it to all panels, "
                "or to none: they are then in the order of the configuration, smallest first",
            )
