"""Interventions of information: shortcuts, labels to learn by heart, and strings that repeat."""

import re

from palimpsest.interventions import Intervention

MARKED = "marked"  # a marker at the start agrees with the last symbol in so many percent of strings
SHUFFLED = "shuffled"  # the last symbols of so many percent of the training strings are permuted
MARKS = rf"{MARKED}-(?P<percent>\d+)"
SHUFFLES = rf"{SHUFFLED}-(?P<percent>\d+)"
# Distinct strings that are trained on for several epochs; and the placebo: strings of which each is
# trained on once, as many in every epoch
REPEATED, FRESH = "repeated", "fresh"

INTERVENTIONS = (
    Intervention(MARKS, "palimpsest.information.intervention_data:marked"),
    Intervention(SHUFFLES, "palimpsest.information.intervention_data:shuffled"),
    Intervention(REPEATED, "palimpsest.information.repeated:repeated_or_fresh"),
    Intervention(FRESH, "palimpsest.information.repeated:repeated_or_fresh"),
)


def marked(percent: int) -> str:
    """The variant whose marker agrees with the last symbol in this percent of training strings."""
    return f"{MARKED}-{percent}"


def shuffled(percent: int) -> str:
    """The variant in which the last symbols of this percent of training strings are permuted."""
    return f"{SHUFFLED}-{percent}"


def percent_marked(name: str) -> int | None:
    """The percent from the name of a variant with markers; None for any other variant."""
    return _percent(MARKS, name)


def percent_shuffled(name: str) -> int | None:
    """The percent from the name of a variant with permuted symbols; None for any other variant."""
    return _percent(SHUFFLES, name)


def _percent(pattern: str, name: str) -> int | None:
    found = re.fullmatch(pattern, name)
    return int(found["percent"]) if found else None
