"""The engine of claims. A claim is a sentence that the tables support, contradict or leave open.

All claims are judged in the same way. A claim has a statistic with an interval, and a region in
which the claim holds. The verdict is "agrees" if the whole interval lies inside the region,
"disagrees" if the whole interval lies outside, and otherwise "cannot tell". Each claim defines its
own statistic, and whether the interval is over seeds, strings or splits of models. Every section
lists its claims in its `claims.py`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from palimpsest.statistics import DECIMALS
from palimpsest.tables.claims import CLAIMS


class Region(NamedTuple):
    """The closed interval of a statistic in which a claim holds, and a text for readers."""

    low: float
    high: float
    text: str


def above(bound: float) -> Region:
    """Strictly above: the closed interval begins at the next number."""
    return Region(np.nextafter(bound, np.inf), np.inf, f"> {bound:g}")


def below(bound: float) -> Region:
    """Strictly below."""
    return Region(-np.inf, np.nextafter(bound, -np.inf), f"< {bound:g}")


def at_least(bound: float) -> Region:
    """The bound or above."""
    return Region(bound, np.inf, f">= {bound:g}")


def at_most(bound: float) -> Region:
    """The bound or below."""
    return Region(-np.inf, bound, f"<= {bound:g}")


def between(low: float, high: float) -> Region:
    """From one bound to the other, both included."""
    return Region(low, high, f"{low:g} to {high:g}")


class Estimate(NamedTuple):
    """A statistic and its 95 % interval.

    `values` holds the statistic of every seed in which it is defined, and `mean` is their mean.
    `over` says in one or two words what the interval is over, such as "seeds". `lower` and `upper`
    are NaN if there is no interval.
    """

    values: tuple[float, ...] = ()
    mean: float = np.nan
    lower: float = np.nan
    upper: float = np.nan
    over: str = ""


class Case(NamedTuple):
    """A part of the tables on which a claim is tested separately, for example one language.

    `tables` are in the order of `Claim.reads`, and `n_models` counts the models in them.
    """

    language: str
    n_models: int
    tables: tuple[pd.DataFrame, ...]


def each_language(*frames: pd.DataFrame) -> list[Case]:
    """One case for every language that is in all the tables."""
    by_language = [dict(list(frame.groupby("language"))) for frame in frames]
    return [
        Case(language, n_models_in(first), tuple(found[language] for found in by_language))
        for language, first in by_language[0].items()
        if all(language in found for found in by_language)
    ]


def n_models_in(table: pd.DataFrame) -> int:
    """The number of models in a table; 0 for a table without the column `model`."""
    return table["model"].nunique() if "model" in table else 0


@dataclass(frozen=True)
class Claim:
    """One claim that tables can test.

    Parameters
    ----------
    question : key of the question that the claim answers, in the section's `QUESTIONS`
    claim : the claim in one sentence
    reads : the kind of table that the claim reads, or several kinds, separated by blanks
    statistic : the statistic in words
    region : where the statistic has to lie for the claim to hold
    estimate : function that makes an `Estimate` from the tables of one case
    cases : function that makes the cases from the whole tables; by default, one case per language
    by_construction : whether the definitions alone force the statistic into the region
    """

    question: str
    claim: str
    reads: str
    statistic: str
    region: Region
    estimate: Callable[..., Estimate] = field(repr=False)
    cases: Callable[..., list[Case]] = field(default=each_language, repr=False)
    by_construction: bool = False

    def tests(self, given: Mapping[str, pd.DataFrame | None]) -> list[tuple[str, int, Estimate]]:
        """Language, number of models and estimate of each case; [] if a table has no rows."""
        frames = [given.get(kind) for kind in self.reads.split()]
        if any(frame is None or frame.empty for frame in frames):
            return []
        cases = self.cases(*frames)
        return [(case.language, case.n_models, self.estimate(*case.tables)) for case in cases]


NOT_TESTED = [("", 0, Estimate())]


def judge_all(claims: Iterable[Claim], given: Mapping[str, pd.DataFrame | None]) -> pd.DataFrame:
    """The table `claims`: one row for every claim and every case of the claim.

    Parameters
    ----------
    claims : the claims of all sections
    given : whole tables, by the names of their kinds, which the claims use in `reads`
        A claim whose table is absent or empty has one row, without a language: cannot tell.
    """
    rows = [
        {
            "question": claim.question,
            "claim": claim.claim,
            "statistic": claim.statistic,
            "agrees_if": claim.region.text,
            "language": language,
            "n_models": n_models,
            **judge(estimate, claim.region),
            # If a value lies outside the region, the definitions did not force it there: then the
            # claim was really tested.
            "by_construction": claim.by_construction
            and all(claim.region.low <= value <= claim.region.high for value in estimate.values),
        }
        for claim in claims
        for language, n_models, estimate in claim.tests(given) or NOT_TESTED
    ]
    return pd.DataFrame(rows, columns=CLAIMS.names)


def judge(estimate: Estimate, region: Region) -> dict:
    """The columns of the table `claims` about the estimate, the interval and the verdict."""
    # Rounded, so that seeds that all give 0.1 have a mean equal to the bound 0.1.
    mean, lower, upper = np.round([estimate.mean, estimate.lower, estimate.upper], DECIMALS)
    if region.low <= lower and upper <= region.high:
        verdict = "agrees"
    elif upper < region.low or lower > region.high:
        verdict = "disagrees"
    else:
        verdict = "cannot tell"
    return {
        "n_seeds": len(estimate.values),
        "estimate": mean,
        "lower": lower,
        "upper": upper,
        "interval_over": "" if np.isnan(lower) or np.isnan(upper) else estimate.over,
        "verdict": verdict,
    }
