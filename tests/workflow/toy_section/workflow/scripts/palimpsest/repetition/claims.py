"""The claim about repeated strings."""

import pandas as pd

from palimpsest.claims import NO_THRESHOLD, Claim, Estimate, below
from palimpsest.statistics import student

QUESTIONS = {"repetition": "Are many training strings repeated?"}


def share_repeated(table: pd.DataFrame) -> Estimate:
    """The share of repeated strings, with an interval over the seeds."""
    shares = table["share_repeated"]
    return Estimate(tuple(shares), *student(shares), over="seeds")


CLAIMS = [
    Claim(
        "repetition",
        "Most distinct training strings occur once.",
        "repeated",
        "share of the distinct training strings that occur more than once",
        below(0.5),
        share_repeated,
        evidence=(NO_THRESHOLD,),
    ),
]
