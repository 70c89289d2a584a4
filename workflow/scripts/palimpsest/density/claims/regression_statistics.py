"""Statistics of claims on regressions: effects with the intervals of their tests.

Source: LMD3: Language Model Data Density Dependence, section 6.2, appendices A.5 and A.9.
"""

from functools import partial

import numpy as np
import pandas as pd

from palimpsest import claims
from palimpsest.claims import NO_THRESHOLD, SHARE, Case
from palimpsest.density.kernel import preferred_kernel
from palimpsest.density.kinds import (
    ACCURACY,
    HIDDEN,
    LEAK_CONDITION,
    LEAKED,
    ON_DENSITY,
    ON_RANDOM,
    PERPLEXITY,
    PLACEBO,
    REGRESSIONS,
    TEXT_DENSITY,
    TEXT_REGRESSIONS,
)
from palimpsest.density.regressions import LINEAR, RAW
from palimpsest.estimates import Estimate, interval_note
from palimpsest.number_format import number
from palimpsest.statistics import CONFIDENCE, student

statistic = partial(claims.statistic, evidence=NO_THRESHOLD)
EXCHANGES, QUERIES = "exchanges of strings", "queries"
SELF_JUDGED = "the hidden states are those of the model that is judged"
TRAINED_ON = "whether the model was trained on this corpus is not known"
# The bandwidth of the gaussian kernel in the paper's section 6.2
BANDWIDTH_OF_TEXTS = 0.5


UNITS = {PERPLEXITY: "perplexity", ACCURACY: "log odds"}


def unit_of_leaks(outcome: str, term: str) -> str:
    trend = ", linear trend" if term == LINEAR else ""
    return f"change ({UNITS[outcome]}{trend}), linear or logistic"


@statistic(REGRESSIONS.name, unit_of_leaks)
def regressed_on_leaks(regressions: pd.DataFrame, outcome: str, term: str) -> Estimate:
    return regressed(regressions, regression=LEAK_CONDITION, outcome=outcome, term=term)


def unit_of_density(outcome: str) -> str:
    return f"change for one standard deviation ({UNITS[outcome]}), linear or logistic, raw density"


@statistic(REGRESSIONS.name, unit_of_density)
def regressed_on_density(
    regressions: pd.DataFrame, embedding: str, outcome: str, regression: str, term: str
) -> Estimate:
    rows = regressions[(regressions["embedding"] == embedding) & (regressions["predictor"] == RAW)]
    return regressed(rows, outcome=outcome, regression=regression, term=term)


def regressed(rows: pd.DataFrame, **chosen: str) -> Estimate:
    """The effect of one term of a regression; the effect on placebos is in the remarks."""
    for column, value in chosen.items():
        rows = rows[rows[column] == value]
    found = {role: by_exchanges(rows[rows["string_role"] == role]) for role in (LEAKED, PLACEBO)}
    return found[LEAKED]._replace(remarks=(interval_note("placebos", found[PLACEBO]),))


def by_exchanges(row: pd.DataFrame) -> Estimate:
    """The effect in a table's only row, with its interval and p-value by exchanging strings."""
    if len(row) != 1 or row[["effect", "lower", "upper"]].isna().any(axis=None):
        return Estimate()
    effect, lower, upper, p_value = row.iloc[0][["effect", "lower", "upper", "p_value"]]
    about = ("of these seeds and models: it does not speak of others",)
    return Estimate((effect,), effect, lower, upper, EXCHANGES, remarks=about, p_value=p_value)


def each_set(regressions: pd.DataFrame, outcome: str) -> list[Case]:
    """One case for every set of queries of a text that has the outcome."""
    rows = regressions[regressions["outcome"] == outcome]
    n_sets = regressions.groupby("language")["query_set"].nunique()
    return [
        Case(language if n_sets[language] == 1 else f"{language}, {name}", 1, (own,))
        for (language, name), own in rows.groupby(["language", "query_set"], sort=False)
    ]


def unit_of_texts(outcome: str) -> str:
    whose = "a query's" if outcome == PERPLEXITY else "a response's"
    return f"change of {whose} perplexity for one standard deviation, raw density"


@statistic(TEXT_REGRESSIONS.name, unit_of_texts, cases=each_set)
def of_text(regressions: pd.DataFrame, regression: str, term: str, outcome: str) -> Estimate:
    """The effect of a term on the perplexity of one set of queries, or of the responses to them.

    Of raw density, with Student's interval.

    Density is the local or the random part. Without an approximation there are no parts, and an
    estimate on density alone is empty. The kernel is the paper's gaussian kernel, if the table has
    it. The bandwidth is the nearest one to the paper's, and is in the remarks.
    """
    from scipy.special import stdtrit

    # Without an approximation, the density is exact: over the nearest texts and all other texts.
    if regression == ON_DENSITY and ON_RANDOM not in set(regressions["regression"]):
        return Estimate()
    rows = regressions[regressions["outcome"] == outcome]
    rows = rows[(rows["regression"] == regression) & (rows["term"] == term)]
    rows = rows[rows["predictor"].isna() | (rows["predictor"] == RAW)]
    remarks = [TRAINED_ON]
    if HIDDEN in set(rows["embedding"]):
        remarks.append(SELF_JUDGED)
    if rows["kernel"].notna().any():
        rows = rows[rows["kernel"] == preferred_kernel(set(rows["kernel"]))]
        row = rows.loc[[(rows["bandwidth"] - BANDWIDTH_OF_TEXTS).abs().idxmin()]]
        remarks.append(
            f"{row['kernel'].item()} kernel, bandwidth {number(row['bandwidth'].item())}"
        )
    else:
        row = rows
    if len(row) != 1 or row[["estimate", "std_error", "df"]].isna().any(axis=None):
        return Estimate()
    found = row.iloc[0]
    half = stdtrit(found["df"], (1 + CONFIDENCE) / 2) * found["std_error"]
    estimate = float(found["estimate"])
    ends = estimate - half, estimate + half
    return Estimate(
        (estimate,), estimate, *ends, QUERIES, remarks=tuple(remarks), p_value=found["p_value"]
    )


def at_papers_setting(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows of the paper's kernel, if there are any, and of the nearest bandwidth to its one."""
    rows = rows[rows["kernel"] == preferred_kernel(set(rows["kernel"]))]
    bandwidths = rows["bandwidth"].to_numpy()
    return rows[bandwidths == bandwidths[np.abs(bandwidths - BANDWIDTH_OF_TEXTS).argmin()]]


@statistic(
    TEXT_DENSITY.name, "share of the density at a query that is the local part", limits=SHARE
)
def share_of_local_part(density: pd.DataFrame) -> Estimate:
    """The mean share over documents of queries, with Student's interval over the documents.

    The local part has the weight k / N of algorithm 1. The kernel and the bandwidth are those of
    `of_text`. Undefined without an approximation.

    Source: LMD3, footnote 4.
    """
    rows = density[density["local_share"].notna()]
    if rows.empty:
        return Estimate()
    own = at_papers_setting(rows)
    shares = own.groupby(["query_set", "document"])["local_share"].mean()
    mean, lower, upper = student(shares)
    remarks = (f"{own['kernel'].iloc[0]} kernel, bandwidth {number(own['bandwidth'].iloc[0])}",)
    return Estimate((mean,), mean, lower, upper, "documents of queries", remarks=remarks)
