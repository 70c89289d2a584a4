"""What remains memorised after unlearning: numbers for the report.

A share is over strings and models: the mean over the strings that a measure can answer for, for
each problem, and then the mean over the problems.
"""

from math import isnan

import pandas as pd

from palimpsest.estimates import clipped
from palimpsest.figures import style
from palimpsest.statistics import Interval
from palimpsest.unlearning.evaluate.outcomes import NOTHING, over_problems
from palimpsest.unlearning.evaluate.placebos import FORGET, PLACEBO
from palimpsest.unlearning.evaluate.samples import PROBLEM_KEYS
from palimpsest.unlearning.run.setups import ENDS

COLUMNS = ["before", "after", "retrained"]


def answerable_rows(memorised: pd.DataFrame, measure: str, strings: str) -> pd.DataFrame:
    """The rows of one measure and kind of strings that the measure can answer for."""
    chosen = (memorised["measure"] == measure) & (memorised["string_role"] == strings)
    return memorised[chosen & memorised["answerable"].astype(bool)]


def of_problems(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.groupby(["method", *PROBLEM_KEYS], sort=False)[COLUMNS].mean()


def of_method(memorised: pd.DataFrame, measure: str, strings: str, method: str) -> dict:
    """Shares of one method: an `Interval` for each column, and `excess`, after minus retrained.

    All are NaN if the measure can answer for no string.
    """
    rows = answerable_rows(memorised, measure, strings)
    found = of_problems(rows[rows["method"] == method])
    shares = {name: clipped(over_problems(found[name]), (0, 1)) for name in COLUMNS}
    excess = over_problems(found["after"] - found["retrained"])
    return {**shares, "excess": clipped(excess, (-1, 1))}


def measure_rows(memorised: pd.DataFrame, nearest: str | None) -> list[dict]:
    present = set(memorised["measure"])
    return [
        measure_row(memorised, measure, strings, nearest)
        for measure in style.MEASURES
        for strings in (FORGET, PLACEBO)
        if measure in present and (memorised["string_role"] == strings).any()
    ]


def measure_row(memorised: pd.DataFrame, measure: str, strings: str, nearest: str | None) -> dict:
    """Shares before, after (mean over the methods, lowest and highest, nearest) and retrained.

    A share is NaN if the measure can answer for no string.
    """
    every = memorised[(memorised["measure"] == measure) & (memorised["string_role"] == strings)]
    rows = answerable_rows(memorised, measure, strings)
    found = of_problems(rows)
    names = found.index.get_level_values("method")
    of_methods = found[~names.isin(ENDS)].groupby(level="method", sort=False)["after"].mean()
    return {
        "measure": measure,
        "string_role": strings,
        "n_strings": n_of(every),
        "n_answerable": n_of(rows),
        "before": found["before"].mean(),
        "after": of_methods.mean(),
        "lowest": of_methods.min(),
        "highest": of_methods.max(),
        "nearest": of_methods.get(nearest, float("nan")),
        "retrained": found["retrained"].mean(),
    }


def n_of(rows: pd.DataFrame) -> int:
    """Number of different strings, counted once in every problem."""
    return len(rows[[*PROBLEM_KEYS, "string_id"]].drop_duplicates())


def nothing_to_remove(memorised: pd.DataFrame) -> list[str]:
    """Measures that find no more before unlearning than in retrained models.

    With several problems: the interval of the difference reaches to 0 or below. With one problem,
    there is no interval, and the difference is nearly 0.
    """
    found = []
    for measure in style.MEASURES:
        rows = of_problems(answerable_rows(memorised, measure, FORGET))
        by_problem = rows.groupby(level=PROBLEM_KEYS, sort=False).mean()
        excess = over_problems(by_problem["before"] - by_problem["retrained"])
        if len(by_problem) and not shows_more(excess):
            found.append(measure)
    return found


def shows_more(excess: Interval) -> bool:
    return excess.mean >= NOTHING and (isnan(excess.lower) or excess.lower > 0)
