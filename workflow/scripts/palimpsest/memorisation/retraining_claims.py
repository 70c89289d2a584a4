"""The claims of RQ3 and RQ4, tested by exact retraining: leave-one-out.

The claims of the same words that are tested with stand-ins rest on an approximation; where both are
there, retraining is the stronger evidence. The placebo of each string is a string that neither
training has seen: two trainings differ in more than the one string, and what they find for the
placebo is this difference. So a claim that training on a string makes it memorised is tested on the
excess over the placebos.

Source: Learning Without Memorizing Considered Infeasible, section 4.
"""

import pandas as pd

from palimpsest.claims import (
    DIFFERENCE,
    RETRAINING,
    SHARE,
    Claim,
    above,
    at_least,
    at_most,
    between,
)
from palimpsest.memorisation.claim_statistics import (
    UNIT,
    high_entropy,
    low_entropy,
    over_seeds,
    per_unit,
)
from palimpsest.memorisation.margins import ALMOST_ALL, NEARLY_EQUAL, NEXT_TO_NONE

# Statistics of the table `leave_one_out`: one row per string that is left out.


def by_retraining(strings: pd.DataFrame, measure: str) -> pd.DataFrame:
    """The rows of a measure by retraining."""
    return strings[(strings["measure"] == measure) & (strings["evidence"] == "retraining")]


def excess_over_placebos(strings: pd.DataFrame, quantity: str, measure: str) -> pd.Series:
    """Memorisation of the strings at optimal learning, minus that of their placebos.

    The quantity is `below` (the share of strings below the threshold) or `depth` (the mean of the
    score, without the rule for the start).
    """
    rows = by_retraining(strings, measure)
    excess = rows[f"{quantity}_at_optimum"] - rows[f"placebo_{quantity}_at_optimum"]
    return rows.assign(excess=excess).groupby(UNIT)["excess"].mean()


def least_excess_over_placebos(strings: pd.DataFrame) -> pd.Series:
    """The lower of the excesses by counterfactual and by contextual memorisation."""
    excess = [
        excess_over_placebos(strings, "below", measure)
        for measure in ("counterfactual", "contextual")
    ]
    return pd.concat(excess, axis=1).min(axis=1, skipna=False)


def fraction_by_retraining(strings: pd.DataFrame, measure: str) -> pd.Series:
    """Fraction of the strings that are memorised at optimal learning."""
    rows = by_retraining(strings, measure)
    return (rows["score_at_optimum"] > 0).groupby([rows[name] for name in UNIT]).mean()


def repeated_minus_single(strings: pd.DataFrame, column: str, measure: str) -> pd.Series:
    """Mean of a column over the repeated strings minus that over strings with one copy.

    NaN for a training set without one of the groups. The column `memorised` is 1 for strings that
    are memorised at optimal learning.
    """
    rows = by_retraining(strings, measure)
    rows = rows.assign(memorised=(rows["score_at_optimum"] > 0).astype(float))
    return per_unit(
        rows,
        lambda unit: (
            unit.loc[unit["count"] > 1, column].mean() - unit.loc[unit["count"] == 1, column].mean()
        ),
    )


CLAIMS = [
    Claim(
        "RQ3",
        "Memorisation is unavoidable when a language is learned optimally (by retraining).",
        "leave_one_out",
        "share of training strings below the contextual threshold at optimal learning, minus that "
        "share of their placebos, by retraining without each string",
        above(0),
        over_seeds(excess_over_placebos, quantity="below", measure="contextual"),
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
        over_seeds(excess_over_placebos, quantity="depth", measure="contextual"),
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
        over_seeds(least_excess_over_placebos),
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
        over_seeds(fraction_by_retraining, measure="contextual"),
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
        over_seeds(fraction_by_retraining, measure="contextual"),
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
            "fraction memorised at optimal learning, repeated strings minus strings with one copy, "
            f"{measure}, by retraining without each string",
            between(-NEARLY_EQUAL, NEARLY_EQUAL),
            over_seeds(repeated_minus_single, column="memorised", measure=measure),
            low_entropy,
            limits=DIFFERENCE,
            evidence=(RETRAINING,),
        )
        for measure in ("contextual", "counterfactual")
    ],
    Claim(
        "RQ4",
        "Frequent strings are, if anything, contextually memorised less (by retraining).",
        "leave_one_out",
        "weighted memorisation at optimal learning, repeated strings minus strings with one copy, "
        "contextual, by retraining without each string",
        at_most(0),
        over_seeds(repeated_minus_single, column="score_at_optimum", measure="contextual"),
        low_entropy,
        limits=DIFFERENCE,
        evidence=(RETRAINING,),
    ),
]
