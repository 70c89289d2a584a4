"""Statistics of tables `information`: one value for each seed and model.

A run is one model that is trained with one seed and one share. Statistics compare the runs of a
seed with each other, so a level that all runs of a seed have drops out. Numbers of a run are means
over the layers of one place and one position.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from palimpsest.information.kinds import CLS, LAST, MARKERS, RANDOM_MARKERS, SHUFFLES
from palimpsest.lazy_import import lazy_import
from palimpsest.models.sites import MLP, RESIDUAL
from palimpsest.statistics import is_constant, pair_order

pd = lazy_import("pandas")

ENTROPY, INFORMATION = "entropy", "mutual_information"
MEASURES = (ENTROPY, INFORMATION)
ACCURACY, SHARE = "accuracy", "share"
MEMORISED = "memorised"
# The placebo column of each measure, and its name in words
PLACEBOS = {
    INFORMATION: ("mutual_information_permuted", "permuted strings"),
    MEMORISED: ("memorised_unseen", "held-out strings"),
}
NORMS = ("two_norm", "frobenius")
UNIT = ["model", "size", "seed"]
RUN = [*UNIT, SHARE]
GREEK = {MARKERS: "alpha", SHUFFLES: "beta"}  # the names of the share
# The places and positions that claims are about: of language models, and of encoders
JUDGED = ((MLP, LAST), (RESIDUAL, CLS))
NEARLY_ONE = 1 - 1e-9
LEVELS = 3  # of accuracy; fewer do not order models


def at_site(information: pd.DataFrame) -> pd.DataFrame:
    """The rows that claims are about.

    Of language models, they are those of the neurons of feed-forward layers, at the symbol before
    the answer. Of encoders, they are those of the stream after each block, at the first token.
    """
    sites = zip(information["place"], information["position"], strict=True)
    return information[np.fromiter((site in JUDGED for site in sites), dtype=bool)]


def has_random_markers(information: pd.DataFrame) -> bool:
    """Whether the table has runs of its own for random markers, as that of encoders has."""
    return bool((information["intervention"] == RANDOM_MARKERS).any())


def with_random_markers(information: pd.DataFrame) -> pd.DataFrame:
    """The rows, and those of random markers and wrong answers against neither as one more.

    Without shuffled answers, strings have no markers. Markers that agree by chance alone say
    nothing. So this step gives no shortcut; but the wrong answers are learned by heart. A table of
    encoders has rows of its own, in which all else is equal.
    """
    if has_random_markers(information):
        return information
    start = information[information[SHARE] == 0]
    has_markers = start["intervention"] == MARKERS
    change = start.assign(intervention=RANDOM_MARKERS, share=has_markers.astype(float))
    return pd.concat([information, change], ignore_index=True)


def of_intervention(information: pd.DataFrame, intervention: str) -> pd.DataFrame:
    rows = at_site(information)
    return rows[rows["intervention"] == intervention]


def runs_of(rows: pd.DataFrame, columns: tuple[str, ...]) -> pd.DataFrame:
    return rows.groupby(RUN)[list(columns)].mean().reset_index()


def by_model(values: pd.Series) -> pd.DataFrame:
    """Values by seed (rows) and model (columns), from values by at least seed and model."""
    return values.groupby(level=["seed", "model"]).mean().unstack("model")


def slopes(rows: pd.DataFrame, column: str, by: list[str] = UNIT) -> pd.Series:
    """The least-squares slope of a column on the share, for each group of rows.

    It is the change from share 0 to share 1 along a straight line, in the unit of the column. NaN
    if a group has values at one share only.
    """
    known = rows.dropna(subset=[column])
    groups = [known[key] for key in by]
    share = known[SHARE] - known.groupby(by)[SHARE].transform("mean")
    products = (share * known[column]).groupby(groups).sum()
    squares = (share**2).groupby(groups).sum()
    at_one_share = known.groupby(by)[SHARE].agg(lambda own: bool(is_constant(own)))
    return products / squares.mask(at_one_share.reindex(squares.index).astype(bool))


def trend(information: pd.DataFrame, intervention: str, column: str) -> pd.DataFrame:
    """The slope of a column on the share; by seed and model."""
    rows = of_intervention(information, intervention)
    return by_model(slopes(runs_of(rows, (column,)), column))


def associated(
    information: pd.DataFrame, intervention: str, association: Callable, one: str, other: str
) -> pd.DataFrame:
    """The association of two columns over the runs of a seed; by seed and model.

    Accuracies count as equal if they differ by chance alone (`levels`), and seeds in which they
    have fewer than three levels do not count.
    """
    columns = tuple(dict.fromkeys([one, other]))
    rows = of_intervention(information, intervention)
    known = with_levels(rows) if ACCURACY in columns else runs_of(rows, tuple({*columns} - {SHARE}))
    known = known.dropna(subset=list(columns))
    units = list(known.groupby(UNIT))
    index = pd.MultiIndex.from_frame(pd.DataFrame([unit for unit, _ in units], columns=UNIT))
    values = [association(own[one].to_numpy(), own[other].to_numpy()) for _, own in units]
    return by_model(pd.Series(values, index=index, dtype=float))


def with_levels(rows: pd.DataFrame) -> pd.DataFrame:
    """One row per run, as of `runs_of` with all numbers, whose accuracies are means of levels.

    NaN in a seed with fewer than three levels.
    """
    numbers = [name for name in rows.select_dtypes("number") if name not in RUN]
    runs = runs_of(rows, tuple(numbers))

    def of_unit(own: pd.DataFrame) -> pd.Series:
        level = levels(own[ACCURACY].to_numpy(), own["n_answers"].to_numpy())
        means = own[ACCURACY].groupby(level).transform("mean")
        return means if level.max(initial=-1) + 1 >= LEVELS else means * np.nan

    parts = [of_unit(own) for _, own in runs.groupby(UNIT)]
    return runs.assign(**{ACCURACY: pd.concat(parts) if parts else np.nan})


def levels(shares: ArrayLike, n: ArrayLike) -> np.ndarray:
    """The level of each share, int[k] from 0: shares that differ by chance alone have the same one.

    Sorted shares are of one level if each is within two standard errors of the next, as binomial
    shares float[k] of `n` cases, int[k].
    """
    shares = np.asarray(shares, dtype=float)
    order = np.argsort(shares, kind="stable")
    variances = (shares * (1 - shares) / n)[order]
    errors = np.sqrt(variances[1:] + variances[:-1])
    found = np.empty(len(shares), dtype=int)
    found[order] = np.cumsum(np.concatenate([[0], np.diff(shares[order]) > 2 * errors]))
    return found


def pearson(x: ArrayLike, y: ArrayLike) -> float:
    """Pearson's correlation of x and y, float[n]; NaN for fewer than three or without variation."""
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if len(x) < 3 or is_constant(x) or is_constant(y):
        return np.nan
    return float(np.clip(np.corrcoef(x, y)[0, 1], -1, 1))


def fisher(x: ArrayLike, y: ArrayLike) -> float:
    """Fisher's transformation (artanh) of Pearson's correlation of x and y, float[n].

    Correlations of few values near 1 or -1 are skewed, and Student's interval of their mean is too
    narrow. Their transformations are nearly normal. A correlation of 1 would be infinite, so it
    counts as 1 - 1e-9.

    Source: Fisher, On the probable error of a coefficient of correlation deduced from a small
    sample, Metron 1 (1921).
    """
    return float(np.arctanh(np.clip(pearson(x, y), -NEARLY_ONE, NEARLY_ONE)))


def kendall(x: ArrayLike, y: ArrayLike) -> float:
    """Kendall's tau-b of x and y, float[n]; NaN for fewer than three or without variation.

    Source: Kendall, The treatment of ties in ranking problems, Biometrika 33 (1945).
    """
    x_order, y_order = pair_order(x), pair_order(y)
    n_comparable = np.count_nonzero(x_order), np.count_nonzero(y_order)
    if len(x_order) < 3 or not all(n_comparable):
        return np.nan
    return float((x_order * y_order).sum() / np.sqrt(np.prod(np.array(n_comparable, float))))


def degenerate(information: pd.DataFrame, intervention: str) -> pd.Series:
    """The share of neurons without a measure, at every share; over all runs."""
    rows = of_intervention(information, intervention)
    counts = rows.groupby(SHARE)[["n_degenerate", "n_neurons"]].sum()
    return counts["n_degenerate"] / counts["n_neurons"]
