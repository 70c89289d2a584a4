"""Interventions of memorisation: with or without a target string in the training set."""

import re

from palimpsest.interventions import Intervention

WITH, WITHOUT = "with", "without"
TARGETED = rf"({WITH}|{WITHOUT})-(?P<role>s\d+)"

INTERVENTIONS = (
    Intervention(TARGETED, "palimpsest.memorisation.target_data:with_or_without_target"),
)


def with_target(role: str) -> str:
    """The intervention with a target string; roles are s0, s1, ..."""
    return f"{WITH}-{role}"


def without_target(role: str) -> str:
    return f"{WITHOUT}-{role}"


def target_of(name: str) -> str | None:
    match = re.fullmatch(TARGETED, name)
    return match["role"] if match else None
