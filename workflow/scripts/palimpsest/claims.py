"""The engine of claims. A claim is a sentence that the tables support, contradict or leave open.

All claims are judged in the same way. A claim has a statistic with an interval, and a region in
which the claim holds. The verdict is "agrees" if the whole interval lies inside the region,
"disagrees" if the whole interval lies outside, and otherwise "cannot tell". It speaks of the median
seed, because few seeds say little about the mean of skewed values. So if the interval is over five
seeds or more, the sign test must give the same verdict: it holds whatever the distribution of the
values is. If all seeds give the same value, Student's interval has no width and shows a floor, a
ceiling or a tie. Then the sign test alone decides, or the exact test of the orders of strings,
which random strings would hardly have in all seeds. `tests/benchmarks/bench_verdicts.py` measures
how often a verdict is wrong.

A statistic is declared where it is computed, by the decorator `statistic`: what it reads, its
words, its limits and what it rests on. A claim is one row: a question, a sentence, a statistic and
a region. A section lists its claims in `claims/rows.py`.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from inspect import signature
from string import Formatter
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri

from palimpsest.estimates import SEEDS, Estimate
from palimpsest.statistics import (
    CONFIDENCE,
    DECIMALS,
    FEWEST_SIGNS,
    MOST_VALUES,
    SIGN_LEVEL,
    Interval,
    holm,
    median_interval,
    n_beyond_median,
    power,
    sample_size,
    student_p_value,
)
from palimpsest.tables.claims import CLAIMS


class Region(NamedTuple):
    """The closed interval of a statistic in which a claim holds, and a text for readers."""

    low: float
    high: float
    text: str

    def holds(self, value: float) -> bool:
        return bool(self.low <= value <= self.high)


def above(bound: float) -> Region:
    """Strictly above: the closed interval begins at the next number."""
    return Region(np.nextafter(bound, np.inf), np.inf, f"> {bound:g}")


def below(bound: float) -> Region:
    return Region(-np.inf, np.nextafter(bound, -np.inf), f"< {bound:g}")


def at_least(bound: float) -> Region:
    return Region(bound, np.inf, f">= {bound:g}")


def at_most(bound: float) -> Region:
    return Region(-np.inf, bound, f"<= {bound:g}")


def between(low: float, high: float) -> Region:
    return Region(low, high, f"{low:g} to {high:g}")


# The smallest and the largest value that a statistic can have.
ANY_NUMBER = (-np.inf, np.inf)
NOT_NEGATIVE = (0.0, np.inf)
SHARE = (0.0, 1.0)
DIFFERENCE = (-1.0, 1.0)  # of two shares or scores; also the range of rank associations

# What decides in a statistic that a string is memorised, or forgotten.
CONSTANT = "constant"  # a threshold that is the same for all strings
RETRAINING = "retraining"  # models trained without the string
STAND_INS = "same-frequency"  # strings never trained on that are equally frequent
LANGUAGE = "language"  # the language's exact probabilities
REFERENCE_MODEL = "reference model"  # a model that was trained on other data
NO_THRESHOLD = "no threshold"  # nothing: the statistic is about losses or counts alone


class Case(NamedTuple):
    """A part of the tables on which a claim is tested separately, for example one language.

    `tables` are in the order of `Statistic.reads`, and `n_models` counts the models in them.
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
    return table["model"].nunique() if "model" in table else 0


def computed(function: Callable[..., Estimate], arguments: Mapping, *tables) -> Estimate:
    """The estimate of a function that gives an estimate itself."""
    return function(*tables, **those_of(function, arguments))


def those_of(function: Callable, arguments: Mapping) -> dict:
    """The arguments that a function has parameters for."""
    return {name: arguments[name] for name in signature(function).parameters if name in arguments}


@dataclass(frozen=True, eq=False)
class Statistic:
    """A statistic of tables: what it reads, what it is in words, and how it is estimated.

    Called, it is the function on which it was declared. `of` fixes arguments. Words, limits,
    evidence and cases may depend on arguments: each of them may be a function, which gets the
    arguments that it has parameters for. So does the function of the statistic.

    Parameters
    ----------
    function : from tables to an `Estimate`, or to the values that `estimator` takes
    reads : the kind of table that the statistic reads, or several kinds, separated by blanks
    template : the statistic in words, with the names of arguments in braces
    range : smallest and largest value that the statistic can have; intervals are clipped to them
    rests_on : what the statistic rests on, one or several of the names above
    cases : function that makes the cases from the whole tables
    estimator : makes the estimate from `function`, `arguments` and the tables of one case
    arguments : those that are fixed
    """

    function: Callable
    reads: str
    template: str | Callable[..., str]
    range: tuple[float, float] | Callable[..., tuple[float, float]]
    rests_on: str | tuple[str, ...] | Callable[..., str | tuple[str, ...]]
    cases: Callable[..., list[Case]] = field(repr=False)
    estimator: Callable[..., Estimate] = field(repr=False)
    arguments: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, *tables, **arguments):
        return self.function(*tables, **arguments)

    def of(self, **arguments) -> "Statistic":
        """The statistic with some arguments. Raises `TypeError` for one that nothing uses."""
        if unused := arguments.keys() - self._parameters():
            raise TypeError(f"{self.function.__name__}: no argument {', '.join(sorted(unused))}")
        return replace(self, arguments={**self.arguments, **arguments})

    def knowing(self, facts: Mapping[str, Any]) -> "Statistic":
        """The statistic with those of some arguments that it has, except what is fixed already."""
        known = {name: facts[name] for name in facts.keys() & self._parameters()}
        return replace(self, arguments={**known, **self.arguments})

    @property
    def words(self) -> str:
        return self._at(self.template).format(**self.arguments)

    @property
    def limits(self) -> tuple[float, float]:
        return self._at(self.range)

    @property
    def evidence(self) -> tuple[str, ...]:
        found = self._at(self.rests_on)
        return (found,) if isinstance(found, str) else found

    def estimate(self, *tables: pd.DataFrame) -> Estimate:
        """The estimate from the tables of one case."""
        return self.estimator(self.function, self.arguments, *tables)

    def of_cases(self, *frames: pd.DataFrame) -> list[tuple[str, int, Estimate]]:
        """Language, number of models and estimate of each case in whole tables."""
        cases = self.cases(*frames, **those_of(self.cases, self.arguments))
        return [(case.language, case.n_models, self.estimate(*case.tables)) for case in cases]

    def _at(self, declared):
        return declared(**those_of(declared, self.arguments)) if callable(declared) else declared

    def _parameters(self) -> set[str]:
        parts = (self.function, self.template, self.range, self.rests_on, self.cases)
        names = {name for part in parts if callable(part) for name in signature(part).parameters}
        if isinstance(self.template, str):
            names |= {name for _, name, *_ in Formatter().parse(self.template) if name}
        return names


def statistic(
    reads: str,
    words: str | Callable[..., str],
    *,
    evidence: str | tuple[str, ...] | Callable,
    limits: tuple[float, float] | Callable = ANY_NUMBER,
    cases: Callable[..., list[Case]] = each_language,
    estimator: Callable[..., Estimate] = computed,
) -> Callable[[Callable], Statistic]:
    """Declare a function as a `Statistic`, which has the meaning of the parameters."""

    def declare(function: Callable) -> Statistic:
        return Statistic(function, reads, words, limits, evidence, cases, estimator)

    return declare


@dataclass(frozen=True)
class Claim:
    """One claim that tables can test.

    Parameters
    ----------
    question : key of the question that the claim answers, in the section's `QUESTIONS`
    claim : the claim in one sentence
    statistic : the statistic that tests the claim, with its arguments
    region : where the statistic has to lie for the claim to hold
    by_construction : whether the definitions alone force the statistic into the region
    remark : what a reader has to know about all rows of the claim, in a few words
    on_request : whether the claim has no row at all where its tables were not asked for
    """

    question: str
    claim: str
    statistic: Statistic
    region: Region
    by_construction: bool = False
    remark: str = ""
    on_request: bool = False

    def tests(
        self, given: Mapping[str, pd.DataFrame | None], facts: Mapping[str, Any]
    ) -> list[tuple[str, int, Estimate]]:
        """Language, number of models and estimate of each case; [] if a table has no rows."""
        frames = [given.get(kind) for kind in self.statistic.reads.split()]
        if any(frame is None or frame.empty for frame in frames):
            return []
        return [
            (language, n_models, estimate._replace(remarks=(*estimate.remarks, self.remark)))
            for language, n_models, estimate in self.statistic.knowing(facts).of_cases(*frames)
        ]


ROW_KEYS = ["question", "claim", "statistic", "language"]  # of the table `claims`
SIZE = ["n_models", "n_seeds"]
NOT_TESTED = [("", 0, Estimate())]


def judge_all(
    claims: Iterable[Claim],
    given: Mapping[str, pd.DataFrame | None],
    families: Mapping[str, str] | None = None,
    facts: Mapping[str, Any] = MappingProxyType({}),
    without: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """The table `claims`: one row for every claim and every case of the claim.

    Parameters
    ----------
    claims : the claims of all sections
    given : whole tables, by the names of their kinds, which the statistics use in `reads`
        A claim whose table is absent or empty has one row, without a language: cannot tell. A claim
        `on_request` then has no row.
    families : the family of every model; if None, families of models are not counted
    facts : arguments that depend on the configuration, for the statistics that have them
    without : tests that are left out, by `ROW_KEYS`, unless they have more `n_models` or `n_seeds`

    Raises
    ------
    ValueError
        If a statistic lies outside the limits that it declares.
    """
    left_out = {} if without is None else without.groupby(ROW_KEYS)[SIZE].max().T.to_dict("list")
    rows = [
        {
            "question": claim.question,
            "claim": claim.claim,
            "statistic": claim.statistic.words,
            "agrees_if": claim.region.text,
            "evidence": ", ".join(claim.statistic.evidence),
            "coverage": estimate.coverage if STAND_INS in claim.statistic.evidence else np.nan,
            "language": language,
            "models": "" if estimate.models is None else ", ".join(estimate.models),
            "n_models": n_models if estimate.models is None else len(estimate.models),
            **judge(estimate, claim),
            **held_in(estimate, claim.region, families),
        }
        for claim in claims
        for language, n_models, estimate in claim.tests(given, facts) or not_tested(claim)
    ]
    rows = [row for row in rows if not is_left_out(row, left_out)]
    rows = [{**row, "verdict_models": verdict_over_models(row)} for row in rows]
    corrected = holm([row["p_value"] for row in rows])
    rows = [{**row, "p_holm": p_value} for row, p_value in zip(rows, corrected, strict=True)]
    return pd.DataFrame(rows, columns=CLAIMS.names)


def not_tested(claim: Claim) -> list[tuple[str, int, Estimate]]:
    """The case of a claim whose tables are absent."""
    return [] if claim.on_request else NOT_TESTED


def is_left_out(row: Mapping[str, Any], left_out: Mapping[tuple, list[int]]) -> bool:
    """Whether a test is left out, which has at most these numbers of models and of seeds."""
    most = left_out.get(tuple(row[key] for key in ROW_KEYS))
    return most is not None and all(row[key] <= n for key, n in zip(SIZE, most, strict=True))


AGREES, DISAGREES, CANNOT_TELL = "agrees", "disagrees", "cannot tell"


def judge(estimate: Estimate, claim: Claim) -> dict:
    """The columns of the table `claims` about the estimate, the interval and the verdict.

    Raises
    ------
    ValueError
        If the estimate lies outside the limits of the claim's statistic.
    """
    # Rounded, so that seeds that all give 0.1 have a mean equal to the bound 0.1.
    rounded = np.round([estimate.mean, estimate.lower, estimate.upper], DECIMALS)
    mean, lower, upper = rounded + 0.0  # -0 becomes 0
    least, most = claim.statistic.limits
    if mean < least or mean > most:
        raise ValueError(
            f"{claim.claim}: the statistic is {mean:g}, but its limits are {least:g} and {most:g}"
        )
    # If a value lies outside the region, the definitions did not force it there: then the claim was
    # really tested.
    forced = claim.by_construction and all(map(claim.region.holds, estimate.values))
    clipped = tuple(np.clip([lower, upper], least, most))
    test = UNTESTED if forced else test_of(estimate, Interval(mean, lower, upper), claim)
    has_spread = not is_alike(estimate)
    decides = has_spread or estimate.counts_certain or test.p_value <= DECISIVE.get(test.name, 0)
    verdict = verdict_on(clipped, claim.region) if decides or forced else CANNOT_TELL
    has_idea = verdict == CANNOT_TELL and len(estimate.values) >= FEWEST_FOR_SIZE
    needed = sample_size(estimate.values, test.bound) if has_idea else np.nan
    if not forced and not signs_allow(verdict, estimate, claim.region):
        verdict, note = CANNOT_TELL, TOO_FEW_ON_ONE_SIDE
    else:
        note = note_on(verdict, estimate, needed, test.name)
    return {
        "n_seeds": len(estimate.values),
        "estimate": mean,
        "interval_over": "" if np.isnan([lower, upper]).any() else estimate.over,
        "lower": clipped[0],
        "upper": clipped[1],
        "p_value": test.p_value,
        "verdict": verdict,
        "note": "; ".join(filter(None, [note, *estimate.remarks])),
        "seeds_needed": needed,
        "power": power_of(verdict, estimate, Interval(mean, *clipped), test, claim),
        "by_construction": forced,
    }


class Test(NamedTuple):
    """A test of the nearest bound of a claim's region, and its two-sided p-value.

    Only Student's test names the bound: more seeds may bring it out of the interval.
    """

    name: str
    p_value: float
    bound: float = np.nan


def is_alike(estimate: Estimate) -> bool:
    """Whether nothing varies: the interval has no width, or all seeds have the same lower bound."""
    lower, upper = np.round([estimate.lower, estimate.upper], DECIMALS)
    values = np.round(estimate.values, DECIMALS)
    of_seeds = estimate.over == SEEDS and len(values) > 1 and np.ptp(values) == 0
    return bool(lower == upper or of_seeds)


UNTESTED = Test("", np.nan)
STUDENT, ORDERS, SIGNS, OTHER = "student", "orders", "signs", "other"
# The largest p-values with which seeds that are all alike decide
DECISIVE = {ORDERS: 1 - CONFIDENCE, SIGNS: 2 * SIGN_LEVEL}


def test_of(estimate: Estimate, interval: Interval, claim: Claim) -> Test:
    """The test of the bound that is nearest to an estimate with this interval.

    Seeds that are all alike have no Student's test. If they share an order that random orders would
    hardly have, the truth is on the estimate's side of 0: this decides about a bound that is not on
    this side. Else the sign test speaks of the median seed: n seeds are all inside of the region,
    or all outside, with probability 1 / 2^n at most if the median is not.
    """
    if estimate.over != SEEDS:
        return Test(OTHER, estimate.p_value)
    if np.isnan(interval).any():
        return UNTESTED
    mean, n = interval.mean, len(estimate.values)
    bound = nearest_bound(mean, claim)
    if not is_alike(estimate):
        return Test(STUDENT, student_p_value(estimate.values, bound), bound)
    bound = np.round(bound, DECIMALS)
    is_beyond = bound <= 0 < mean or mean < 0 <= bound
    if is_beyond and estimate.p_of_chance <= DECISIVE[ORDERS]:
        return Test(ORDERS, estimate.p_of_chance)
    return Test(SIGNS, 2 / 2**n if n >= FEWEST_SIGNS else np.nan)


def power_of(
    verdict: str, estimate: Estimate, interval: Interval, test: Test, claim: Claim
) -> float:
    """The probability that such a study decides, if the estimate and its spread are the truth.

    If the interval is not over seeds, its ends are taken as those of a normal estimate. An estimate
    without spread decides again if it decides here. Without an interval, the probability is 0.
    """
    if np.isnan(interval).any():
        return 0.0
    bound = nearest_bound(interval.mean, claim)
    end = interval.lower if bound < interval.mean else interval.upper
    reach = abs(interval.mean - end)
    if np.isnan(bound) or reach == 0 or is_alike(estimate):
        return float(verdict != CANNOT_TELL)
    if test.name == STUDENT:
        return power(estimate.values, bound)
    return float(ndtr(ndtri((1 + CONFIDENCE) / 2) * (abs(interval.mean - bound) / reach - 1)))


FEWEST_FOR_SIZE = 3  # seeds, to say how many would decide
TOO_FEW_ON_ONE_SIDE = (
    "Student's interval would decide, but too few seeds are on that side for the sign test"
)


def signs_allow(verdict: str, estimate: Estimate, region: Region) -> bool:
    """Whether the sign test gives the same verdict; true if it has too few seeds to say anything.

    It is about the median seed. If the end of training cuts values, they have no upper end.
    """
    if verdict == CANNOT_TELL or estimate.over != SEEDS or len(estimate.values) < FEWEST_SIGNS:
        return True
    lower, upper = np.round(median_interval(estimate.values), DECIMALS)
    return verdict == verdict_on((lower, np.inf if estimate.upper == np.inf else upper), region)


def verdict_on(interval: tuple[float, float], region: Region) -> str:
    """The verdict if the statistic lies somewhere in the interval; NaN ends: cannot tell."""
    lower, upper = interval
    if region.low <= lower and upper <= region.high:
        return AGREES
    if upper < region.low or lower > region.high:
        return DISAGREES
    return CANNOT_TELL


def nearest_bound(value: float, claim: Claim) -> float:
    """The bound of the claim's region that is nearest to a value; NaN if there is none.

    A bound that the limits of the statistic alone keep cannot be crossed, and does not count. With
    two bounds, a test against the nearest bound is the larger p-value of the tests against each:
    inside the region, the test of equivalence (TOST) at 2.5 % on each side.
    """
    (low, high, _), (least, most) = claim.region, claim.statistic.limits
    bounds = [bound for bound, counts in ((low, low > least), (high, high < most)) if counts]
    return min(bounds, key=lambda bound: abs(value - bound), default=np.nan)


def held_in(estimate: Estimate, region: Region, families: Mapping[str, str] | None) -> dict:
    """The columns that say how consistent a claim is: models and families in which it holds."""
    of_families = estimate.families
    if of_families is None and families is not None and estimate.models is not None:
        models = pd.Series(estimate.models, dtype=float)
        of_families = models.groupby([families[name] for name in models.index]).mean()
    return {
        "n_models_hold": n_hold(estimate.models, region),
        "n_families": np.nan if of_families is None else len(of_families),
        "n_families_hold": n_hold(of_families, region),
    }


def verdict_over_models(row: Mapping[str, Any]) -> str:
    """The verdict over models and seeds, from a row of the table `claims`.

    The verdict over seeds is about these models. It also speaks of the median of all such models
    if, by the sign test, most of them lie on the same side. Both tests together are needed: the
    models of a study share its seeds, and the seeds share its models.
    """
    n, n_holding = row["n_models"], row["n_models_hold"]
    if np.isnan(n_holding) or row["by_construction"] or n < FEWEST_SIGNS:
        return ""
    n_least = n - n_beyond_median(n)
    if row["verdict"] == AGREES and n_holding >= n_least:
        return AGREES
    if row["verdict"] == DISAGREES and n - n_holding >= n_least:
        return DISAGREES
    return CANNOT_TELL


def n_hold(values: Mapping[str, float] | None, region: Region) -> float:
    if values is None:
        return np.nan
    return sum(region.holds(np.round(value, DECIMALS)) for value in dict(values).values())


# Why seeds that are all alike decide
ALIKE = {
    SIGNS: "all seeds give the same value: the sign test",
    ORDERS: "all seeds give the same value: the exact test of orders",
}


def note_on(verdict: str, estimate: Estimate, seeds_needed: float, test: str) -> str:
    """Why there is no verdict, or what would decide it; or why no width is no obstacle."""
    alike = is_alike(estimate)
    if verdict != CANNOT_TELL and alike:
        certain = "each case is certain by itself, so no spread is needed"
        return certain if estimate.counts_certain else ALIKE.get(test, "")
    if verdict != CANNOT_TELL:
        return ""
    if not estimate.values:
        return "the statistic is undefined here, or what it needs was not run"
    if np.isnan([estimate.lower, estimate.upper]).any():
        if estimate.over == SEEDS and len(estimate.values) == 1:
            return "only one seed has a value: no interval"
        if estimate.over == SEEDS:
            return "no interval: the statistic is undefined in some cases"
        return f"no interval over {estimate.over}: too few, or all give the same value"
    if alike and not estimate.counts_certain:
        return f"all {estimate.over} give the same value: {FEWEST_SIGNS} alike seeds would decide"
    if not np.isnan(seeds_needed):
        return f"about {seeds_needed:.0f} seeds would decide"
    if estimate.over == SEEDS and len(estimate.values) < FEWEST_FOR_SIZE:
        return "two seeds are too few"
    if estimate.over == SEEDS:
        return f"the estimate is too near a bound: even {MOST_VALUES:,} seeds would not tell"
    return "a bound is inside the interval"
