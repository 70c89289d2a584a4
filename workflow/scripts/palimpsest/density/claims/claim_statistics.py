"""The statistics that test the claims on leakage, and on density with leakage and performance.

All test strings of a seed are random samples of one distribution, and all runs of a seed have the
same ones. So what leakage does to a string is a difference of two differences: between leaked
strings and those that are never leaked, and between two runs. The first removes what a run does to
all strings, the second how hard the strings are. Placebos are treated in the same way as leaked
strings, and their statistic is in the remarks.

A statistic has one value per seed, and its interval is over the seeds. Every seed draws its strings
and trains its models independently; in a language with few strings, seeds can draw the same
strings.
"""

from collections.abc import Callable, Mapping
from functools import partial

import pandas as pd

from palimpsest import claims
from palimpsest.claims import ANY_NUMBER, DIFFERENCE, LANGUAGE, NO_THRESHOLD, SHARE
from palimpsest.density.associations import spearman_given
from palimpsest.density.claims.regression_statistics import SELF_JUDGED
from palimpsest.density.kernel import preferred_kernel
from palimpsest.density.kinds import (
    HIDDEN,
    LEAKAGE,
    LEAKED,
    LEFT_OUT,
    NEVER,
    NGRAMS,
    PLACEBO,
    RETRIEVAL,
    SEPARATION,
    TRUTH,
)
from palimpsest.density.leakage_tables import once
from palimpsest.estimates import Estimate, interval_note, over_seeds
from palimpsest.number_format import number
from palimpsest.statistics import student

statistic = partial(claims.statistic, evidence=NO_THRESHOLD)  # except those on probabilities
# Neighbours among which recall is measured
RETRIEVED = 10
NO_COPY, ONE_COPY = 0, 1
# Of a change: what changes, and its unit
CHANGES = {
    "loss": ("the loss", " (nats per token)"),
    "answer_right": ("the share of right answers", ""),
}


def beyond_never(leakage: pd.DataFrame, column: str, treated: str) -> pd.DataFrame:
    """Mean of treated strings minus that of strings never leaked; by seed (rows) and condition."""
    by_run = leakage.groupby(["string_role", "seed", "n_copies", "paraphrases"])[column].mean()
    return (by_run[treated] - by_run[NEVER]).unstack(["n_copies", "paraphrases"])


def of_leakage(effect: Callable, arguments: Mapping, leakage: pd.DataFrame) -> Estimate:
    """An effect on leaked strings, with that on placebos in the remarks."""
    own = once(leakage)
    return beside_placebo(effect(own, **arguments), effect(own, **arguments, treated=PLACEBO))


def effect(words: str, largest: float) -> Callable:
    """Declare an effect of leakage on a column; `largest` is its limit for shares of answers."""

    def in_words(column: str) -> str:
        what, unit = CHANGES[column]
        return f"change of {what} {words}{unit}"

    def limits(column: str) -> tuple[float, float]:
        return ANY_NUMBER if column == "loss" else (-largest, largest)

    return statistic(LEAKAGE.name, in_words, limits=limits, estimator=of_leakage)


@effect("by one copy, beyond strings that are not leaked", 1)
def copy_effect(leakage: pd.DataFrame, column: str, treated: str = LEAKED) -> pd.Series:
    """What one exact copy changes, by seed: the mean over the numbers of paraphrases."""
    found = beyond_never(leakage, column, treated)
    return found[ONE_COPY].mean(axis=1) - found[NO_COPY].mean(axis=1)


@effect("by three paraphrases, beyond strings that are not leaked", 1)
def paraphrase_effect(leakage: pd.DataFrame, column: str, treated: str = LEAKED) -> pd.Series:
    """What all paraphrases change without an exact copy, by seed."""
    found = beyond_never(leakage, column, treated)[NO_COPY]
    return found[found.columns.max()] - found[0]


@effect("by three paraphrases, with a copy minus without", 2)
def magnified(leakage: pd.DataFrame, column: str, treated: str = LEAKED) -> pd.Series:
    """What all paraphrases change with an exact copy, minus their change without one; by seed."""
    found = beyond_never(leakage, column, treated)
    most = found.columns.get_level_values("paraphrases").max()
    change = {
        n_copies: found[n_copies, most] - found[n_copies, 0] for n_copies in (NO_COPY, ONE_COPY)
    }
    return change[ONE_COPY] - change[NO_COPY]


def beside_placebo(values: pd.Series, placebo: pd.Series) -> Estimate:
    return over_seeds(values, remarks=[interval_note("placebos", student(placebo.dropna()))])


# Density and leakage


@statistic(
    SEPARATION.name,
    "probability that a leaked string is denser than one that is not, narrowest bandwidth",
    limits=SHARE,
)
def separated(separation: pd.DataFrame, embedding: str) -> Estimate:
    """Area under the curve for strings with a copy and no paraphrase, of the narrowest kernel."""
    rows = of_kernel(separation, embedding)
    narrow = rows[
        (rows["bandwidth_or_k"] == rows["bandwidth_or_k"].min()) & (rows["paraphrases"] == 0)
    ]
    narrow = narrow[narrow["n_copies"] == ONE_COPY].set_index("seed")
    found = with_setting(beside_placebo(narrow["auc"], narrow["placebo"]), rows)
    # An area of 1 in all seeds is certain: every leaked string is denser than every other string.
    return found._replace(counts_certain=bool((narrow["auc"] == 1).all()))


@statistic(
    SEPARATION.name,
    "probability that a leaked string is denser than one that is not, narrowest bandwidth: with "
    "three paraphrases, minus without any leak",
    limits=DIFFERENCE,
)
def raised_by_paraphrases(separation: pd.DataFrame, embedding: str) -> Estimate:
    """The same area with all paraphrases and no copy, minus that without any leak."""
    rows = of_kernel(separation, embedding)
    narrow = rows[
        (rows["bandwidth_or_k"] == rows["bandwidth_or_k"].min()) & (rows["n_copies"] == NO_COPY)
    ]
    by_number = narrow.set_index(["paraphrases", "seed"])[["auc", "placebo"]]
    change = by_number.loc[narrow["paraphrases"].max()] - by_number.loc[0]
    return with_setting(beside_placebo(change["auc"], change["placebo"]), rows)


def of_kernel(separation: pd.DataFrame, embedding: str) -> pd.DataFrame:
    rows = separation[separation["embedding"] == embedding]
    return rows[rows["estimator"] == preferred_kernel(set(rows["estimator"]))]


@statistic(
    SEPARATION.name,
    "probability that a leaked string is denser, narrowest minus widest bandwidth",
    limits=DIFFERENCE,
)
def narrow_minus_wide(separation: pd.DataFrame, embedding: str) -> Estimate:
    """Area under the curve of the narrowest bandwidth minus that of the widest.

    Mean over all conditions in which something is leaked. Undefined for one bandwidth.
    """
    rows = of_kernel(separation, embedding)
    rows = rows[(rows["n_copies"] > 0) | (rows["paraphrases"] > 0)]
    if rows["bandwidth_or_k"].nunique() < 2:
        return Estimate()
    by_setting = rows.groupby(["bandwidth_or_k", "seed"])[["auc", "placebo"]].mean()
    narrow, wide = (
        by_setting.loc[rows["bandwidth_or_k"].min()],
        by_setting.loc[rows["bandwidth_or_k"].max()],
    )
    change = narrow - wide
    return with_setting(beside_placebo(change["auc"], change["placebo"]), rows)


def with_setting(estimate: Estimate, rows: pd.DataFrame) -> Estimate:
    remark = f"{rows['estimator'].iloc[0]} kernel, bandwidth {number(rows['bandwidth_or_k'].min())}"
    return estimate._replace(remarks=(remark, *estimate.remarks))


def recalled(retrieval: pd.DataFrame) -> pd.DataFrame:
    """Recall by seed (rows) and embedding (columns)."""
    rows = retrieval[retrieval["k"] == RETRIEVED]
    return rows.pivot(index="seed", columns="embedding", values="recall")


@statistic(
    RETRIEVAL.name,
    "recall of a string's copy and paraphrases among its ten nearest training strings",
    limits=SHARE,
)
def recall(retrieval: pd.DataFrame, embedding: str) -> Estimate:
    """Recall of copies and paraphrases; the recall of a random order is in the remarks."""
    chance = retrieval.loc[retrieval["k"] == RETRIEVED, "chance"].mean()
    remarks = [f"a random order: {number(chance)}"]
    return over_seeds(recalled(retrieval)[embedding], remarks=remarks)


@statistic(
    RETRIEVAL.name,
    "recall at ten by hidden states minus recall by n-grams",
    limits=DIFFERENCE,
)
def recall_difference(retrieval: pd.DataFrame) -> Estimate:
    found = recalled(retrieval)
    return over_seeds(found[HIDDEN] - found[NGRAMS])


BEYOND_OTHERS = {
    "log_density": "change of the log density of n-grams, beyond that at strings of other "
    "productions",
    "loss": "change of the loss, beyond that on strings of other productions (nats per token)",
}


@statistic(LEFT_OUT.name, lambda column: BEYOND_OTHERS[column])
def left_out(table: pd.DataFrame, column: str) -> Estimate:
    """The change for strings of the production that is left out, beyond that for the others."""
    rows = table[table["embedding"] == NGRAMS]
    own_group = rows["left_out"] == rows["group"]
    own, others = (rows[some].groupby("seed")[column].mean() for some in (own_group, ~own_group))
    return over_seeds(own - others, remarks=[interval_note("others", student(others))])


# Density and performance


def beyond_run(rows: pd.DataFrame) -> pd.DataFrame:
    """The rows with densities, distances and loss minus their means over strings never leaked.

    The means are those of each run. A run with more leaked strings has fewer others, which changes
    the density at all strings and the loss on them.
    """
    run, columns = ["seed", "n_copies", "paraphrases"], ["log_density", "mean_distance", "loss"]
    means = rows[rows["string_role"] == NEVER].groupby(run)[columns].mean()
    of_run = rows[run].join(means, on=run)[columns]
    return rows.assign(**(rows[columns] - of_run))


@statistic(
    LEAKAGE.name,
    lambda predictor: (
        f"partial rank correlation of {predictor.replace('_', ' ')} and loss over "
        "strings and runs, both beyond strings that are not leaked"
    ),
    limits=DIFFERENCE,
)
def unique(leakage: pd.DataFrame, embedding: str, predictor: str, given: str) -> Estimate:
    """Partial rank correlation of a predictor and the loss, at equal values of another predictor.

    Over leaked strings, strings that are never leaked, and all runs of a seed. The remarks have the
    same correlation with placebos instead of leaked strings.
    """
    rows = beyond_run(leakage[leakage["embedding"] == embedding])
    values = [
        rows[rows["string_role"].isin([role, NEVER])]
        .groupby("seed")
        .apply(lambda own: spearman_given(own[predictor], own["loss"], own[given]))
        for role in (LEAKED, PLACEBO)
    ]
    return beside_placebo(*values)


@statistic(
    LEAKAGE.name,
    "rank correlation of log density and loss over test strings, at equal length",
    limits=DIFFERENCE,
)
def natural(leakage: pd.DataFrame, embedding: str) -> Estimate:
    """Partial rank correlation of log density and loss at equal length, without any leak."""
    rows = leakage[
        (leakage["embedding"] == embedding)
        & (leakage["n_copies"] == 0)
        & (leakage["paraphrases"] == 0)
    ]
    correlations = rows.groupby("seed").apply(
        lambda own: spearman_given(own["log_density"], own["loss"], own["length"])
    )
    remarks = (SELF_JUDGED,) if embedding == HIDDEN else ()
    return over_seeds(correlations, remarks=remarks)


# Density and truth


@statistic(
    TRUTH.name,
    "rank correlation with the exact probability at equal length, mean over all kernels, "
    "bandwidths and numbers of neighbours",
    limits=DIFFERENCE,
    evidence=LANGUAGE,
)
def orders(truth: pd.DataFrame, embedding: str, strings: str) -> Estimate:
    """Correlation with the exact probability at equal length, mean over all settings.

    The mean, because the best setting would be chosen by the strings that judge it.
    """
    rows = truth[(truth["embedding"] == embedding) & (truth["string_role"] == strings)]
    return over_seeds(rows.groupby("seed")["given_length"].mean())
