"""Interventions: which strings a dataset has.

An intervention belongs to the section that needs it, which alone composes and reads its name. The
section's file `interventions.py` registers it, with the function that makes its datasets.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

BASE = "base"  # independent strings


@dataclass(frozen=True)
class Intervention:
    """An intervention, and the function that makes its datasets.

    `pattern` is a regular expression for its names. `made_by` names a function, such as
    "palimpsest.datasets.plain:dedup", that is imported on first use. The function takes a
    `palimpsest.datasets.build.DatasetRequest` and returns a table of kind `strings`.
    """

    pattern: str
    made_by: str


def maker(interventions: Iterable[Intervention], name: str) -> str:
    """The name of the function that makes the datasets of the intervention with this name.

    Raises `ValueError` if no intervention has such a name.
    """
    for intervention in interventions:
        if re.fullmatch(intervention.pattern, name):
            return intervention.made_by
    known = ", ".join(intervention.pattern for intervention in interventions)
    raise ValueError(f"unknown intervention {name!r}; the patterns of known ones: {known}")


def number_in(pattern: str, name: str) -> int | None:
    """The number in the only named group of a pattern; None if the name has no such number."""
    found = re.fullmatch(pattern, name)
    number = found and next(iter(found.groupdict().values()))
    return None if number is None else int(number)
