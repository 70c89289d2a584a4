"""Panels of the configuration: their files, and the names of their columns.

Source: Causal Estimation of Memorisation Profiles.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.settings import Settings
from palimpsest.models.table import NAME, NAMES_ARE
from palimpsest.profiles.panel_columns import LOSS, OUTCOME
from palimpsest.tables.user_files import TABLES, wrong_path

KEY = "profiles/panels"


@dataclass(frozen=True)
class PanelFile:
    """A panel of the configuration, and the file's own names of the columns."""

    name: str
    file: str
    columns: Mapping[str, str] = field(default_factory=dict)


def panels(block: dict) -> dict[str, PanelFile]:
    """The panels of the block `profiles`, by name. A value is a path or a block with `file`."""
    found = {}
    for name, asked in block["panels"].items():
        values = {"file": asked} if isinstance(asked, str) else dict(asked)
        found[name] = PanelFile(name, values.pop("file"), values)
    return found


def mistakes(settings: Settings) -> Iterator[Mistake]:
    """Panels that are not there, or whose names cannot be in paths."""
    for name, panel in panels(settings.block("profiles")).items():
        key = f"{KEY}/{name}"
        if not NAME.fullmatch(name):
            yield Mistake(key, f"is not a name; allowed are {NAMES_ARE}")
        elif wrong := wrong_path(panel.file, TABLES, "a panel"):
            yield Mistake(key, wrong)
        elif OUTCOME in panel.columns and LOSS in panel.columns:
            yield Mistake(key, f"{OUTCOME} and {LOSS} are both given; name one of the two columns")
