"""The statistics that test the claims on the erase phases of methods.

They compare a method with its repair phases alone, on the same models and by the same code. A claim
has a row for every method and language, and the row's note names the method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import pandas as pd

from palimpsest import claims
from palimpsest.claims import DIFFERENCE, RETRAINING, Case, each_language
from palimpsest.estimates import Estimate
from palimpsest.unlearning.claims.claim_statistics import over_problems, per_problem
from palimpsest.unlearning.evaluate.ablation import REPAIR, WHOLE


def each_method(table: pd.DataFrame) -> list[Case]:
    """One case for every language and method."""
    return [
        case._replace(tables=(rows,))
        for case in each_language(table)
        for _, rows in case.tables[0].groupby("method", sort=False)
    ]


def of_one_method(of_problems: Callable, arguments: Mapping, table: pd.DataFrame) -> Estimate:
    """The estimate over the problems of a table about one method; a remark names the method."""
    found = over_problems(of_problems, arguments, table)
    return found._replace(remarks=(*found.remarks, f"method: {table['method'].iloc[0]}"))


statistic = partial(
    claims.statistic,
    "unlearning_ablation",
    evidence=RETRAINING,
    cases=each_method,
    estimator=of_one_method,
)


def whole_minus_repair(table: pd.DataFrame, values: pd.Series) -> float:
    """The value of the whole method minus that of its repair phases alone, in one problem."""
    by_part = values.set_axis(table["part"])
    return by_part[WHOLE] - by_part[REPAIR]


@statistic("forgetting quality of the method minus that of its repair alone", limits=DIFFERENCE)
@per_problem
def erasing_adds_quality(table: pd.DataFrame) -> float:
    return whole_minus_repair(table, table["forgetting_quality"])


@statistic(
    "share of the gap closed on forget strings, minus the larger of those on "
    "placebos and on retained strings (from -1 to 1), minus the same of its "
    "repair alone",
    limits=(-2, 2),
)
@per_problem
def erasing_adds_share(table: pd.DataFrame) -> float:
    return whole_minus_repair(table, (table["share"] - table["control_share"]).clip(-1, 1))
