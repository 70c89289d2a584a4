"""Interventions of information: shortcuts, labels to learn by heart, and strings that repeat."""

from palimpsest.interventions import Intervention, number_in

MARKED = "marked"  # marked-30: a marker at the start agrees with the last symbol in 30 %
SHUFFLED = "shuffled"  # shuffled-30: the last symbols of 30 % of training strings are permuted
MARKS = rf"{MARKED}-(?P<percent>\d+)"
SHUFFLES = rf"{SHUFFLED}-(?P<percent>\d+)"
UNMARKED = "unmarked"  # of encoders: as marked-0, without any word
# Distinct strings that are trained on for several epochs; and the placebo: equally many strings in
# every epoch, each trained on once
REPEATED, FRESH = "repeated", "fresh"

INTERVENTIONS = (
    Intervention(MARKS, "palimpsest.information.intervention_data:marked"),
    Intervention(SHUFFLES, "palimpsest.information.intervention_data:shuffled"),
    Intervention(REPEATED, "palimpsest.information.intervention_data:repeated_or_fresh"),
    Intervention(FRESH, "palimpsest.information.intervention_data:repeated_or_fresh"),
)


def marked(percent: int) -> str:
    """The variant whose marker agrees with the last symbol in `percent` of the training strings."""
    return f"{MARKED}-{percent}"


def shuffled(percent: int) -> str:
    """The variant in which the last symbols of `percent` of the training strings are permuted."""
    return f"{SHUFFLED}-{percent}"


def percent_marked(name: str) -> int | None:
    return number_in(MARKS, name)


def percent_shuffled(name: str) -> int | None:
    return number_in(SHUFFLES, name)
