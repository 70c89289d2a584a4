"""The claims of RQ3 and RQ4, tested by exact retraining: leave-one-out.

The claims of the same words that are tested with stand-ins rest on an approximation; retraining is
the stronger evidence, and their rows say so. The placebo of each string is a string that neither
training has seen: two trainings differ in more than the one string, and their difference on the
placebo measures this. So a claim that training on a string makes it memorised is tested on the
excess over the placebos.

Source: Learning Without Memorizing Considered Infeasible, section 4.
"""

from dataclasses import replace
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.claims import (
    DIFFERENCE,
    RETRAINING,
    SHARE,
    Claim,
    Estimate,
    above,
    at_least,
    at_most,
    between,
)
from palimpsest.memorisation import claim_statistics
from palimpsest.memorisation.claim_statistics import (
    UNIT,
    curves,
    high_entropy,
    low_entropy,
    per_unit,
)
from palimpsest.memorisation.margins import ALMOST_ALL, NEARLY_EQUAL, NEXT_TO_NONE

BY_RETRAINING = " (by retraining)"  # in the words of each claim

# Statistics of the table `leave_one_out`: one row per string that is left out.


def excess_over_placebos(strings: pd.DataFrame, quantity: str, measure: str) -> pd.Series:
    """Memorisation of the strings at optimal learning, minus that of their placebos.

    The quantity is `below` (the share of strings below the threshold) or `depth` (the mean of the
    score, without the rule for the start). A string counts by the number of training strings that
    it represents.
    """
    return weighted_mean(with_excess(strings, quantity, measure), "excess")


def with_excess(strings: pd.DataFrame, quantity: str, measure: str) -> pd.DataFrame:
    rows = curves(strings, measure)
    excess = rows[f"{quantity}_at_optimum"] - rows[f"placebo_{quantity}_at_optimum"]
    return rows.assign(excess=excess)


def weighted_mean(rows: pd.DataFrame, column: str) -> pd.Series:
    return per_unit(rows, lambda unit: np.average(unit[column], weights=unit["weight"]))


def least_excess_over_placebos(strings: pd.DataFrame) -> pd.Series:
    """The lower of the excesses by counterfactual and by contextual memorisation."""
    excess = [
        excess_over_placebos(strings, "below", measure)
        for measure in ("counterfactual", "contextual")
    ]
    return pd.concat(excess, axis=1).min(axis=1, skipna=False)


def fraction_by_retraining(strings: pd.DataFrame, measure: str) -> pd.Series:
    """Fraction of the strings that are memorised at optimal learning."""
    rows = curves(strings, measure)
    memorised = (rows["score_at_optimum"] > 0).astype(float)
    return weighted_mean(rows.assign(memorised=memorised), "memorised")


def below_placebos(strings: pd.DataFrame) -> pd.Series:
    """Share of the placebos that are below the contextual threshold at optimal learning."""
    return weighted_mean(curves(strings, "contextual"), "placebo_below_at_optimum")


def repeated_minus_single(strings: pd.DataFrame, quantity: str, measure: str) -> pd.Series:
    """Excess over the placebos: mean of the repeated strings minus that of strings with one copy.

    NaN for a training set of which no string of one group was left out.
    """
    return per_unit(
        with_excess(strings, quantity, measure),
        lambda unit: difference_of_means(unit["excess"], unit["count"] > 1),
    )


def repeated_minus_single_as_paper(strings: pd.DataFrame, measure: str) -> pd.Series:
    """Fraction memorised, as the paper counts: repeated strings minus strings with one copy."""
    return per_unit(
        curves(strings, measure),
        lambda unit: difference_of_means(unit["score_at_optimum"] > 0, unit["count"] > 1),
    )


def difference_of_means(values: pd.Series, first: pd.Series) -> float:
    """Mean of the values of the first group minus that of the others; NaN if one has no values."""
    return values[first].mean() - values[~first].mean()


def what_was_left_out(strings: pd.DataFrame) -> str:
    runs = strings.drop_duplicates([*UNIT, "string_id"])
    sizes = ", ".join(map(str, sorted(runs["size"].unique())))
    return f"{len(runs)} retrainings, without one of {sizes} strings each"


estimator = partial(claim_statistics.estimator, remark=what_was_left_out)

TWO_DIFFERENCES = (-2, 2)  # limits of a difference of excesses
PLACEBOS = {"placebos below the threshold at this epoch": below_placebos}

CLAIMS = [
    Claim(
        "RQ3",
        "Memorisation is unavoidable when a language is learned optimally (by retraining).",
        "leave_one_out",
        "share of training strings below the contextual threshold at optimal learning, minus that "
        "share of their placebos, by retraining without each string",
        above(0),
        estimator(excess_over_placebos, quantity="below", measure="contextual"),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ3",
        "Some degree of memorisation is needed for optimal learning (by retraining).",
        "leave_one_out",
        "mean contextual score of training strings at optimal learning, minus that of their "
        "placebos, by retraining without each string",
        above(0),
        estimator(excess_over_placebos, quantity="depth", measure="contextual"),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ3",
        "Some strings are memorised before optimal learning by the measures that compare with a "
        "second training (by retraining).",
        "leave_one_out",
        "share of training strings below the threshold at optimal learning, minus that share of "
        "their placebos; the lower of counterfactual and contextual memorisation",
        above(0),
        estimator(least_excess_over_placebos),
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ3",
        "Almost all strings of the high-entropy language are contextually memorised at optimal "
        "learning (by retraining).",
        "leave_one_out",
        "fraction of strings contextually memorised at optimal learning, language of high entropy, "
        "by retraining without each string",
        at_least(ALMOST_ALL),
        estimator(fraction_by_retraining, beside=PLACEBOS, measure="contextual"),
        high_entropy,
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
    Claim(
        "RQ3",
        "A sizable subset, not almost all, of the strings of the low-entropy language is "
        "contextually memorised at optimal learning (by retraining).",
        "leave_one_out",
        "fraction of strings contextually memorised at optimal learning, language of low entropy, "
        "by retraining without each string",
        between(NEXT_TO_NONE, ALMOST_ALL),
        estimator(fraction_by_retraining, beside=PLACEBOS, measure="contextual"),
        low_entropy,
        limits=SHARE,
        evidence=(RETRAINING,),
    ),
    *[
        Claim(
            "RQ4",
            f"Frequent and infrequent strings are almost equally susceptible to {measure} "
            "memorisation (by retraining).",
            "leave_one_out",
            "share below the threshold at optimal learning, minus that share of the placebos; "
            f"repeated strings minus strings with one copy, {measure}, by retraining without each "
            "string",
            between(-NEARLY_EQUAL, NEARLY_EQUAL),
            estimator(
                repeated_minus_single,
                beside={
                    "as the paper counts, from the start on": partial(
                        repeated_minus_single_as_paper, measure=measure
                    )
                },
                quantity="below",
                measure=measure,
            ),
            low_entropy,
            limits=TWO_DIFFERENCES,
            evidence=(RETRAINING,),
        )
        for measure in ("contextual", "counterfactual")
    ],
    Claim(
        "RQ4",
        "Frequent strings are, if anything, contextually memorised less (by retraining).",
        "leave_one_out",
        "mean score at optimal learning without the rule for the start, minus that of the "
        "placebos; repeated strings minus strings with one copy, contextual, by retraining without "
        "each string",
        at_most(0),
        estimator(repeated_minus_single, quantity="depth", measure="contextual"),
        low_entropy,
        limits=TWO_DIFFERENCES,
        evidence=(RETRAINING,),
    ),
]


STRONGER = "the row by retraining, which follows, is the stronger evidence"


def with_retraining(claims: list[Claim]) -> list[Claim]:
    """The claims, with the claims by retraining at their places.

    A claim by retraining follows the claim of the same words, whose rows then say which of the two
    is the stronger evidence, or else the last claim on its question.
    """
    of_words = {claim.claim.replace(BY_RETRAINING, ""): claim for claim in CLAIMS}
    found = []
    for claim in claims:
        stronger = of_words.pop(claim.claim, None)
        found += [claim] if stronger is None else [weaker(claim), stronger]
    for claim in of_words.values():
        last = max(i for i, other in enumerate(found) if other.question == claim.question)
        found.insert(last + 1, claim)
    return found


def weaker(claim: Claim) -> Claim:
    """The claim; its rows have a mark that retraining is the stronger evidence."""

    def estimate(*tables: pd.DataFrame) -> Estimate:
        made = claim.estimate(*tables)
        return made._replace(marks=(*made.marks, STRONGER))

    return replace(claim, estimate=estimate)
