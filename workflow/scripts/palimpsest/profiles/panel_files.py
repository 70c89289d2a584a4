"""Panels of the configuration: their files, and the names of their columns.

Source: Causal Estimation of Memorisation Profiles.
"""

from __future__ import annotations

from collections.abc import Iterator

from palimpsest.configuration.messages import Mistake
from palimpsest.configuration.named_files import NamedFile, named_files, unusable_files
from palimpsest.configuration.settings import Settings
from palimpsest.profiles.panel_columns import LOSS, OUTCOME

KEY = "profiles/panels"


def panels(block: dict) -> dict[str, NamedFile]:
    """The panels of the block `profiles`, by name."""
    return named_files(block["panels"])


def mistakes(settings: Settings) -> Iterator[Mistake]:
    """Panels that are not there, or whose names cannot be in paths."""
    known = panels(settings.block("profiles"))
    yield from unusable_files(KEY, known, "a panel")
    for name, panel in known.items():
        if OUTCOME in panel.columns and LOSS in panel.columns:
            yield Mistake(
                f"{KEY}/{name}", f"{OUTCOME} and {LOSS} are both given; name one of the two columns"
            )
