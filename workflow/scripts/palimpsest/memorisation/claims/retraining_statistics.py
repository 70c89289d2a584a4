"""The statistics of the claims of RQ3 and RQ4 by exact retraining: leave-one-out.

The claims of the same words that are tested with stand-ins rest on an approximation; retraining is
the stronger evidence, and their rows say so. The placebo of each string is a string that neither
training has seen: two trainings differ in more than the one string, and their difference on the
placebo measures this. So a claim that training on a string makes it memorised is tested on the
excess over the placebos.

Source: Learning Without Memorizing Considered Infeasible, section 4.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pandas as pd

from palimpsest.claims import DIFFERENCE, RETRAINING, SHARE
from palimpsest.memorisation.claims.claim_statistics import (
    UNIT,
    Values,
    curves,
    of_entropy,
    over_units,
    per_unit,
    statistic,
)
from palimpsest.statistics import beyond_false_alarms

WITHOUT_EACH = ", by retraining without each string"


def what_was_left_out(strings: pd.DataFrame) -> str:
    runs = strings.drop_duplicates([*UNIT, "string_id"])
    sizes = ", ".join(map(str, sorted(runs["size"].unique())))
    return f"{len(runs)} retrainings, without one of {sizes} strings each"


# Statistics of the table `leave_one_out`: one row per string that is left out.
of_strings_left_out = partial(
    statistic, "leave_one_out", evidence=RETRAINING, remark=what_was_left_out
)

EXCESS = {
    "below": "share of training strings below the {measure} threshold at optimal learning, beyond "
    "their placebos",
    "margin": "mean {measure} score of training strings at optimal learning, beyond their placebos",
}


@of_strings_left_out(lambda quantity: f"{EXCESS[quantity]}{WITHOUT_EACH}", limits=DIFFERENCE)
def excess_over_placebos(strings: pd.DataFrame, quantity: str, measure: str) -> pd.Series:
    """Memorisation of the strings at optimal learning, minus that of their placebos.

    The quantity is `below` (the share of strings below the threshold) or `margin` (the mean of the
    score, without the rule for the start). A string counts by the number of training strings that
    it represents.
    """
    return weighted_mean(with_excess(strings, quantity, measure), "excess")


def with_excess(strings: pd.DataFrame, quantity: str, measure: str) -> pd.DataFrame:
    rows = curves(strings, measure)
    sides = (rows[f"{of}{quantity}_at_optimum"] for of in ("", "placebo_"))
    return rows.assign(excess=beyond_false_alarms(*sides))


def weighted_mean(rows: pd.DataFrame, column: str) -> pd.Series:
    return per_unit(rows, lambda unit: np.average(unit[column], weights=unit["weight"]))


@of_strings_left_out(
    "share of training strings below the threshold at optimal learning, beyond "
    "their placebos; the lower of counterfactual and contextual memorisation",
    limits=DIFFERENCE,
)
def least_excess_over_placebos(strings: pd.DataFrame) -> pd.Series:
    """The lower of the excesses by counterfactual and by contextual memorisation."""
    excess = [
        excess_over_placebos(strings, "below", measure)
        for measure in ("counterfactual", "contextual")
    ]
    return pd.concat(excess, axis=1).min(axis=1, skipna=False)


def below_placebos(strings: pd.DataFrame) -> pd.Series:
    """Share of the placebos that are below the contextual threshold at optimal learning."""
    return weighted_mean(curves(strings, "contextual"), "placebo_below_at_optimum")


@of_strings_left_out(
    "fraction of strings contextually memorised at optimal learning, language of {entropy} entropy"
    f"{WITHOUT_EACH}",
    limits=SHARE,
    cases=of_entropy,
    context={"placebos below the threshold at this epoch": below_placebos},
)
def share_by_retraining(strings: pd.DataFrame) -> pd.Series:
    """Fraction of the strings that are memorised at optimal learning."""
    rows = curves(strings, "contextual")
    memorised = (rows["score_at_optimum"] > 0).astype(float)
    return weighted_mean(rows.assign(memorised=memorised), "memorised")


def difference_of_means(values: pd.Series, first: pd.Series) -> float:
    """Mean of the values of the first group minus that of the others; NaN if one has no values."""
    return values[first].mean() - values[~first].mean()


def repeated_minus_single_as_paper(strings: pd.DataFrame, measure: str) -> pd.Series:
    """Fraction memorised, from the start on: repeated strings minus strings with one copy."""
    return per_unit(
        curves(strings, measure),
        lambda unit: difference_of_means(unit["score_at_optimum"] > 0, unit["count"] > 1),
    )


REPEATED = {
    "below": "share below the threshold at optimal learning, beyond the placebos",
    "margin": "mean score at optimal learning without the rule for the start, beyond the placebos",
}


def beside_paper(of_units: Values, arguments: Mapping, strings: pd.DataFrame, **settings):
    """`over_units`; for shares, a remark has the difference from the start on."""
    name = "as the paper's code counts, from the start on"
    context = {name: repeated_minus_single_as_paper} if arguments["quantity"] == "below" else {}
    return over_units(of_units, arguments, strings, context=context, **settings)


@of_strings_left_out(
    lambda quantity: (
        f"{REPEATED[quantity]}; repeated strings minus strings with one copy, "
        f"{{measure}}{WITHOUT_EACH}"
    ),
    limits=(-2, 2),  # of a difference of excesses
    cases=partial(of_entropy, entropy="low"),
    estimator=beside_paper,
)
def repeated_minus_single(strings: pd.DataFrame, quantity: str, measure: str) -> pd.Series:
    """Excess over the placebos: mean of the repeated strings minus that of strings with one copy.

    NaN for a training set if no string of one group was left out.
    """
    return per_unit(
        with_excess(strings, quantity, measure),
        lambda unit: difference_of_means(unit["excess"], unit["count"] > 1),
    )
