"""The verdicts on the planted studies of `memorisation_worlds`."""

from functools import cache

from helpers.memorisation_worlds import (
    STUDIES,
    agreement,
    approximation,
    leave_one_out,
)
from palimpsest.claims import judge_all
from palimpsest.memorisation.claims import CLAIMS


def claims(studies, agreement=None, approximation=None, leave_one_out=None):
    cheap = {"agreement": agreement, "approximation": approximation}
    return judge_all(CLAIMS, {**studies, **cheap, "leave_one_out": leave_one_out})


@cache
def planted(world):
    studies = {name: study(world) for name, study in STUDIES.items()}
    return studies, agreement(world), approximation(world), leave_one_out(world)


@cache
def verdicts(world):
    return claims(*planted(world))


def found(frame, claim):
    rows = frame[(frame["question"] == claim.question) & (frame["claim"] == claim.claim)]
    return set(rows["verdict"])
