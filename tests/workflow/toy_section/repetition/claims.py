"""The claim about repeated strings."""

import pandas as pd

from palimpsest.claims import NO_THRESHOLD, Claim, below, statistic
from palimpsest.estimates import Estimate, over_seeds

QUESTIONS = {"repetition": "Are many training strings repeated?"}


@statistic(
    "repeated",
    "share of the distinct training strings that occur more than once",
    evidence=NO_THRESHOLD,
)
def share_repeated(table: pd.DataFrame) -> Estimate:
    """The share of repeated strings, with an interval over the seeds."""
    return over_seeds(table["share_repeated"])


CLAIMS = [
    Claim(
        "repetition",
        "Most distinct training strings occur once.",
        share_repeated,
        below(0.5),
    ),
]
