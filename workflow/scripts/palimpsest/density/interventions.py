"""Interventions of density: leaked test strings, and training sets without some strings."""

import re
from typing import NamedTuple

from palimpsest.interventions import Intervention, number_in

# Some test strings, or paraphrases of them, take the place of training strings; leaked-0-0 has the
# same test strings, and none of them is leaked
LEAKED = "leaked"
MOST_COPIES, MOST_PARAPHRASES = 1, 3  # of a leaked string
LEAKS = rf"{LEAKED}-(?P<n_copies>[0-{MOST_COPIES}])-(?P<paraphrases>[0-{MOST_PARAPHRASES}])"
WITHOUT_PRODUCTION = "without-production"  # no training string begins with one of the productions
PRODUCTIONS_LEFT_OUT = rf"{WITHOUT_PRODUCTION}-(?P<production>\d+)"

INTERVENTIONS = (
    Intervention(LEAKS, "palimpsest.density.leakage_data:leaked"),
    Intervention(PRODUCTIONS_LEFT_OUT, "palimpsest.density.leakage_data:without_production"),
)


class Leak(NamedTuple):
    """How often each leaked string is among the training strings: its copies and paraphrases."""

    n_copies: int
    paraphrases: int


NO_LEAK = Leak(0, 0)
LEAK_CONDITIONS = tuple(
    Leak(n_copies, paraphrases)
    for n_copies in range(MOST_COPIES + 1)
    for paraphrases in range(MOST_PARAPHRASES + 1)
)


def leaked(leak: Leak) -> str:
    """The variant of one condition of the factorial, such as leaked-1-3."""
    return f"{LEAKED}-{leak.n_copies}-{leak.paraphrases}"


def leaked_times(n_copies: int) -> str:
    """The beginning of the variants with this number of exact copies, such as leaked-1."""
    return f"{LEAKED}-{n_copies}"


def leak_of(name: str) -> Leak | None:
    found = re.fullmatch(LEAKS, name)
    return Leak(int(found["n_copies"]), int(found["paraphrases"])) if found else None


def without_production(number: int) -> str:
    """The variant without the strings of one production, numbered from 1."""
    return f"{WITHOUT_PRODUCTION}-{number}"


def production_left_out(name: str) -> int | None:
    return number_in(PRODUCTIONS_LEFT_OUT, name)
