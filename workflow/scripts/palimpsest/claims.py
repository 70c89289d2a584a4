"""The engine of claims: a sentence that a table can agree with, disagree with, or leave open.

One rule judges all claims. A claim has a statistic with an interval and a region in which the claim
holds. It agrees if the whole interval lies in the region, disagrees if the whole interval lies
outside, and else cannot tell. What the statistic is and what its interval is over, the claim says
itself: seeds, strings, splits of models. Every section lists its own claims in its `claims.py`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd

from palimpsest.statistics import DECIMALS
from palimpsest.tables.claims import CLAIMS


class Region(NamedTuple):
    """The closed interval of a statistic in which a claim holds, and how a reader is told."""

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

    `values` are the statistic in every seed in which it is defined, and `mean` is their mean.
    `over` says in one or two words what varies in the interval, such as "seeds"; `lower` and
    `upper` are NaN where there is no interval.
    """

    values: tuple[float, ...] = ()
    mean: float = np.nan
    lower: float = np.nan
    upper: float = np.nan
    over: str = ""


class Case(NamedTuple):
    """The part of the tables on which a claim is tested by itself, one language for example.

    `tables` are in the order of `Claim.reads`, and `n_models` counts the models in them.
    """

    language: str
    n_models: int
    tables: tuple[pd.DataFrame, ...]


def each_language(*frames: pd.DataFrame) -> list[Case]:
    """A case for every language that all the tables have."""
    by_language = [dict(list(frame.groupby("language"))) for frame in frames]
    return [
        Case(language, n_models_in(first), tuple(found[language] for found in by_language))
        for language, first in by_language[0].items()
        if all(language in found for found in by_language)
    ]


def n_models_in(table: pd.DataFrame) -> int:
    """How many models a table is about; 0 for a table about strings alone."""
    return table["model"].nunique() if "model" in table else 0


@dataclass(frozen=True)
class Claim:
    """One claim that tables can test.

    Parameters
    ----------
    question : key of the question that it answers, of the section's `QUESTIONS`
    claim : the claim in one sentence
    reads : the kind of table that it reads, or several kinds with a blank between them
    statistic : the statistic in words
    region : where the statistic has to lie for the claim to hold
    estimate : function from the tables of one case to an `Estimate`
    cases : function from whole tables to the cases on which the claim is tested, by default every
        language by itself
    by_construction : whether the definitions alone put the statistic where the claim holds
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
        """Language, number of models and estimate of every case; none if a table is missing."""
        frames = [given.get(kind) for kind in self.reads.split()]
        if any(frame is None or frame.empty for frame in frames):
            return []
        cases = self.cases(*frames)
        return [(case.language, case.n_models, self.estimate(*case.tables)) for case in cases]


NOT_TESTED = [("", 0, Estimate())]


def judge_all(claims: Iterable[Claim], given: Mapping[str, pd.DataFrame | None]) -> pd.DataFrame:
    """The table `claims`: a row for every claim and case on which it was tested.

    Parameters
    ----------
    claims : the claims of all sections
    given : whole tables by their kinds, as the claims name them in `reads`
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
            # The definitions decide only what lies where they put it: a value outside is a test.
            "by_construction": claim.by_construction
            and all(claim.region.low <= value <= claim.region.high for value in estimate.values),
        }
        for claim in claims
        for language, n_models, estimate in claim.tests(given) or NOT_TESTED
    ]
    return pd.DataFrame(rows, columns=CLAIMS.names)


def judge(estimate: Estimate, region: Region) -> dict:
    """Estimate, interval and verdict, as columns of the table `claims`."""
    # Rounded: seeds that all give 0.1 must not be told from 0.1 by their last digit.
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
