"""The statistics of memorisation against learning (RQ3): the table `tradeoff`."""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.claims import (
    CONSTANT,
    DIFFERENCE,
    NOT_NEGATIVE,
    SHARE,
    STAND_INS,
    Case,
    n_models_in,
)
from palimpsest.estimates import Estimate
from palimpsest.memorisation.claims.claim_statistics import (
    SAME_OF_UNSEEN,
    UNIT,
    Values,
    at_optimum,
    evidence_of,
    in_lowest_model,
    inner_band,
    least_inner_band,
    low_and_high_entropy,
    of_entropy,
    over_units,
    pairs_of_entropy,
    per_unit,
    runs_of,
    statistic,
)
from palimpsest.statistics import FEWEST_TERMS, beyond_false_alarms, rounding_error

EXCESS = {
    "below": "share of distinct training strings below the {measure} threshold "
    "at optimal learning, beyond strings never trained on",
    "margin": "mean {measure} score of distinct training strings at optimal "
    "learning, beyond strings never trained on, without the rule for "
    "the start",
}


@statistic("tradeoff", lambda quantity: EXCESS[quantity], limits=DIFFERENCE, evidence=evidence_of)
def excess_at_optimum(study: pd.DataFrame, quantity: str, measure: str) -> pd.Series:
    """Memorisation of the distinct training strings minus that of strings never trained on.

    The quantity is `below` (the share of strings whose loss is below the threshold) or `margin`
    (the mean of the score). Both sides are measured at the epoch of optimal learning. Memorisation
    from the start on would not do: the start is after the last miss, so later misses of an unseen
    string would count as evidence at this epoch.
    """
    sides = (at_optimum(study, f"{quantity}_{of}", measure) for of in ("distinct", "unseen"))
    return beyond_false_alarms(*sides)


@statistic(
    "tradeoff",
    lambda quantity: f"{EXCESS[quantity]}; in the model in which this is lowest",
    limits=DIFFERENCE,
    evidence=evidence_of,
    estimator=in_lowest_model,
)
def excess_in_lowest_model(study: pd.DataFrame, quantity: str, measure: str) -> pd.Series:
    return excess_at_optimum(study, quantity, measure)


# What the rule "first crossing" counts, but for copies
BELOW = "below the threshold at this epoch"


def with_unseen(of_units: Values, arguments: Mapping, study: pd.DataFrame) -> Estimate:
    """`over_units`; remarks have those of unseen strings, and the share without the rule.

    By recollection, a remark has that of a perfect learner too.
    """
    columns = {SAME_OF_UNSEEN: "share_memorised_unseen", BELOW: "below_distinct"}
    if arguments["measure"] == "recollection":
        columns["of a perfect learner"] = "share_memorised_perfect"
    context = {name: partial(at_optimum, column=column) for name, column in columns.items()}
    return over_units(of_units, arguments, study, context=context)


@statistic(
    "tradeoff",
    "fraction of strings memorised at optimal learning, from the start on, {measure}, language "
    "of {entropy} entropy",
    limits=SHARE,
    evidence=evidence_of,
    cases=of_entropy,
    estimator=with_unseen,
)
def fraction_at_optimum(study: pd.DataFrame, measure: str) -> pd.Series:
    return at_optimum(study, "share_memorised", measure)


@statistic(
    "tradeoff",
    "share of distinct training strings brought below the {measure} threshold "
    "at optimal learning, corrected for that of strings never trained on, "
    "language of {entropy} entropy",
    limits=(-np.inf, 1.0),  # negative if unseen strings are below more often
    evidence=evidence_of,
    cases=of_entropy,
    context={
        "below the threshold": partial(at_optimum, column="below_distinct"),
        "of strings never trained on": partial(at_optimum, column="below_unseen"),
    },
)
def share_made_to_fall(study: pd.DataFrame, measure: str) -> pd.Series:
    """Share of strings below the threshold at optimal learning, corrected for false alarms.

    A share u of the strings that were never trained on is below the threshold, too. If a share m of
    the strings is below because of the training, and u of the others are below anyway, then
    m + (1 - m) u of all are below. This is solved for m. It is NaN if all unseen strings are below.

    Source: Abbott's formula, A method of computing the effectiveness of an insecticide, Journal of
    Economic Entomology 18 (1925).
    """
    trained = at_optimum(study, "below_distinct", measure)
    unseen = at_optimum(study, "below_unseen", measure)
    above = 1 - unseen
    return ((trained - unseen) / above).where(above > rounding_error(1.0, FEWEST_TERMS))


@statistic(
    "tradeoff",
    "share of distinct training strings below the threshold at optimal "
    "learning, beyond strings never trained on; the lowest of the three "
    "measures, on strings with stand-ins",
    limits=DIFFERENCE,
    evidence=(CONSTANT, STAND_INS),
)
def least_excess_at_optimum(study: pd.DataFrame) -> pd.Series:
    """The lowest excess share below the threshold that any of the paper's three measures gives.

    All measures are applied to the same strings, those that have stand-ins.
    """
    excess = [
        beyond_false_alarms(
            at_optimum(study, "below_covered", measure),
            at_optimum(study, "below_unseen_covered", measure),
        )
        for measure in ("recollection", "counterfactual", "contextual")
    ]
    # If one measure is undefined, the lowest is unknown.
    return pd.concat(excess, axis=1).min(axis=1, skipna=False)


@statistic(
    "tradeoff",
    "largest fall of the fraction from one epoch to the next, {measure}; 0 by construction if the "
    "start is after the last miss",
    limits=SHARE,
    evidence=evidence_of,
)
def largest_fall(study: pd.DataFrame, measure: str) -> pd.Series:
    """Largest fall of the share memorised from one epoch to the next; 0 if it never falls."""
    curve = study[study["measure"] == measure].sort_values("epoch")
    fall = -curve.groupby(UNIT)["share_memorised"].diff()
    return curve.assign(fall=fall.clip(lower=0).round(12)).groupby(UNIT)["fall"].max()


# Languages that differ in nothing but their alphabet: digits, and letters (figures 9 and 10).
ALPHABETS = (("L5", "L7"), ("L6", "L8"))


def digits_and_letters(study: pd.DataFrame) -> list[Case]:
    """One case for each of `ALPHABETS` that is in the table, with both languages."""
    by_language = dict(list(study.groupby("language")))
    pairs = [pair for pair in ALPHABETS if all(name in by_language for name in pair)]
    cases = [(pair, pd.concat([by_language[name] for name in pair])) for pair in pairs]
    return [Case(" - ".join(pair), n_models_in(both), (both,)) for pair, both in cases]


@statistic(
    "tradeoff",
    "share of the training strings that are memorised at optimal learning, {measure}: language "
    "of digits minus the same language of letters",
    limits=DIFFERENCE,
    evidence=evidence_of,
    cases=digits_and_letters,
)
def digits_minus_letters(study: pd.DataFrame, measure: str) -> pd.Series:
    digits, letters = study["language"].unique()
    of_language = study.groupby("language").get_group
    return at_optimum(of_language(digits), "share_memorised", measure) - at_optimum(
        of_language(letters), "share_memorised", measure
    )


def band_width(study: pd.DataFrame, measure: str) -> pd.Series:
    return inner_band(study, measure) / runs_of(study, measure)["last_epoch"]


def least_band_width(study: pd.DataFrame, measure: str) -> pd.Series:
    return least_inner_band(study, measure) / runs_of(study, measure)["last_epoch"]


def minus_high(of_language: Values, study: pd.DataFrame, measure: str) -> pd.Series:
    """The language of low entropy minus its counterpart, in a table with both."""
    ((low, high),) = pairs_of_entropy(study)
    sides = [study[study["language"] == language] for language in (low, high)]
    return of_language(sides[0], measure) - band_width(sides[1], measure)


@statistic(
    "tradeoff",
    "width of the 10 % to 90 % band of starts (share of the training), {measure}, low minus high "
    "entropy; no verdict if the end of training cuts a band of high entropy",
    limits=DIFFERENCE,
    evidence=evidence_of,
    cases=low_and_high_entropy,
    at_least=partial(minus_high, least_band_width),
)
def band_wider_with_low_entropy(study: pd.DataFrame, measure: str) -> pd.Series:
    return minus_high(band_width, study, measure)


@statistic(
    "tradeoff",
    "share of models with optimal learning in the band of all starts, {measure}",
    limits=SHARE,
    evidence=evidence_of,
)
def optimum_in_band(study: pd.DataFrame, measure: str) -> pd.Series:
    """1 if the epoch of optimal learning lies from the first to the last start, otherwise 0.

    Strings that do not start by the end of training may start later, so the band then reaches
    beyond the end. If no string starts, optimal learning is before the band. NaN if no
    string has a threshold.
    """
    run = runs_of(study, measure)
    optimum = run["optimal_epoch"]
    inside = (run["band_first"] <= optimum) & (
        (optimum <= run["band_last"]) | (run["never_starts"] > 0)
    )
    return inside.astype(float).where(run["never_starts"].notna())


def cost_of_stopping_before_unseen(study: pd.DataFrame, measure: str) -> pd.Series:
    """`cost_of_stopping_early`, just before any unseen string is called memorised."""
    rows = study[study["measure"] == measure]
    return per_unit(
        rows,
        lambda unit: _cost_of_stopping_before(
            unit, unit.loc[unit["share_memorised_unseen"] > 0, "epoch"].min()
        ),
    )


@statistic(
    "tradeoff",
    "relative excess of the test loss over its minimum just before the first {measure} start, "
    "language of {entropy} entropy",
    limits=NOT_NEGATIVE,
    evidence=evidence_of,
    cases=of_entropy,
    context={
        "the same before any string never trained on is called memorised": (
            cost_of_stopping_before_unseen
        )
    },
)
def cost_of_stopping_early(study: pd.DataFrame, measure: str) -> pd.Series:
    """Relative excess of the test loss over its minimum, just before any string is memorised."""
    rows = study[study["measure"] == measure]
    return per_unit(rows, lambda unit: _cost_of_stopping_before(unit, unit["band_first"].iloc[0]))


def _cost_of_stopping_before(unit: pd.DataFrame, first: float) -> float:
    """Relative excess of the lowest test loss before the epoch `first`; NaN stands for no epoch."""
    unit = unit.sort_values("epoch")
    first = np.inf if np.isnan(first) else first
    # If a string is memorised from the first measurement on, only the untrained model comes before.
    before = unit[unit["epoch"] < first] if (unit["epoch"] < first).any() else unit[:1]
    return before["test_loss"].min() / unit["test_loss"].min() - 1
