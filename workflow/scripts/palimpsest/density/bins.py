"""Performance on strings of similar length, in bins of equal mass from sparse to dense.

The paper chooses by eye a range of lengths in which perplexity hardly depends on length, and drops
the few largest perplexities. Here the range is the central half of the lengths, with both its ends.
Perplexities above 500, and those of responses above 60, are dropped, which are the paper's bounds.

Source: LMD3: Language Model Data Density Dependence, section 6.2, figures 4 and 5, appendix A.7.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from palimpsest.density.kinds import (
    ACCURACY,
    BINS,
    DENSITY_BINS,
    OUTCOMES_OF_TEXT,
    PERPLEXITY,
    RESPONSE,
    TEXT_BINS,
)
from palimpsest.density.rounding import OF_DISTANCE, is_flat, of_log_density
from palimpsest.lazy_import import lazy_import
from palimpsest.statistics import CONFIDENCE, effective_groups, student, wilson
from palimpsest.tables.kinds import Kind

pd = lazy_import("pandas")

MOST_BINS = 20
FEWEST_STRINGS = 10  # distinct strings per bin; with fewer strings, there are fewer bins, or none
CENTRAL = 0.5  # share of the distinct strings whose lengths make the window
MOST_PERPLEXITY, MOST_OF_RESPONSE = 500.0, 60.0
MOST = {PERPLEXITY: MOST_PERPLEXITY, RESPONSE: MOST_OF_RESPONSE}
EXACT, LOCAL, RANDOM, DISTANCE = "exact", "local", "random", "distance"
X_OF_PART = {
    EXACT: "log_density",
    LOCAL: "log_local",
    RANDOM: "log_random",
    DISTANCE: "mean_distance",
}


def binned(
    strings: pd.DataFrame, outcome: str, most_bins: int = MOST_BINS, magnitude: float | None = None
) -> pd.DataFrame:
    """Bins of equally many rows, in order of x, with the columns `BINS` of a table.

    A row is a string in a run, so a string can have several rows, and rows in several bins. Within
    a bin, a string counts once, by the means of its rows: the interval is over strings, not over
    runs, and over documents if there are any, whose strings are alike. A bin has at least ten
    strings. With fewer strings, or if x does not vary, there is no bin.

    Parameters
    ----------
    strings : columns string_id, length, x and y, and perhaps document; rows without x or y do not
        count
    outcome : `perplexity`, without values above 500, or `response perplexity`, without values
        above 60; their intervals are Student's. Or `accuracy`, from 0 to 1; its interval is
        Wilson's, in which the strings are the trials
    most_bins : number of bins, if there are enough strings
    magnitude : that of `rounding.is_flat` for x
    """
    rows = strings.dropna(subset=["x", "y"])
    rows = rows[rows["y"] <= MOST.get(outcome, np.inf)]
    rows, shortest, longest = _of_similar_length(rows)
    most_bins = min(most_bins, rows["string_id"].nunique() // FEWEST_STRINGS)
    if most_bins < 1 or is_flat(rows["x"], magnitude):
        return pd.DataFrame(columns=BINS.split())
    # Equal x are ordered by the string's name, a hash, so that the order of rows has no effect.
    rows = rows.sort_values(["x", "string_id", "y"])
    numbers = _bins_of_rows(rows["string_id"].to_numpy(), most_bins)
    of_strings = rows.groupby([numbers, "string_id"])[["x", "y"]].mean()
    document_of = None
    if "document" in rows:
        document_of = rows.drop_duplicates("string_id").set_index("string_id")["document"]
    found = []
    for number in range(numbers[-1] + 1):
        means = of_strings.loc[number]
        documents = document_of.loc[means.index].to_numpy() if document_of is not None else None
        lower, upper = _interval(means["y"].to_numpy(), outcome, documents)
        found.append(
            {
                "bin": number + 1,
                "mean_x": means["x"].mean(),
                "outcome": outcome,
                "mean_y": means["y"].mean(),
                "lower": lower,
                "upper": upper,
                "shortest": shortest,
                "longest": longest,
                "n_strings": len(means),
            }
        )
    return pd.DataFrame(found)


def _bins_of_rows(string_ids: np.ndarray, most_bins: int) -> np.ndarray:
    """The bin int[rows] of each row, from 0, in as many bins as have ten strings each.

    There are at least ten strings. A string with several rows may leave a bin with fewer.
    """
    for n_bins in range(most_bins, 0, -1):
        numbers = np.arange(len(string_ids)) * n_bins // len(string_ids)
        parts = np.split(string_ids, np.flatnonzero(np.diff(numbers)) + 1)
        if min(len(set(part)) for part in parts) >= FEWEST_STRINGS:
            return numbers
    raise AssertionError("one bin has all strings")


def _of_similar_length(rows: pd.DataFrame) -> tuple[pd.DataFrame, int, int]:
    """The rows of strings of the central lengths, and the shortest and longest of these."""
    if rows.empty:
        return rows, 0, 0
    lengths = rows.drop_duplicates("string_id")["length"].to_numpy()
    # Both ends are lengths that occur.
    ends = np.quantile(lengths, [(1 - CENTRAL) / 2, (1 + CENTRAL) / 2], method="inverted_cdf")
    shortest, longest = (int(end) for end in ends)
    return rows[rows["length"].between(shortest, longest)], shortest, longest


def _interval(
    y: np.ndarray, outcome: str, documents: np.ndarray | None = None
) -> tuple[float, float]:
    """The 95 % interval of a mean over strings; NaN for perplexities of one string or document."""
    if outcome != ACCURACY:
        alike = documents is not None and len(set(documents)) < len(y)
        lower, upper = _over_documents(y, documents) if alike else student(y)[1:]
        # No perplexity is below 1; this keeps a missing interval missing.
        return np.maximum(lower, 1.0), upper
    # The means of a string's answers vary less than single answers, so Wilson's interval is wide
    # enough. Student's would have no width where all answers are right.
    return wilson(y.mean(), len(y))


def _over_documents(y: np.ndarray, documents: np.ndarray) -> tuple[float, float]:
    """Student's interval of a mean of strings, of which those of a document may be alike.

    The error is that of the sums of a document's deviations, each corrected for its share of the
    strings (CR2), and a few large documents have few degrees of freedom. NaN for a single document.

    Source: Bell and McCaffrey, Bias Reduction in Standard Errors for Linear Regression with
    Multi-Stage Samples (2002).
    """
    from scipy.special import stdtrit

    of_documents = pd.Series(y - y.mean()).groupby(documents)
    sums, share = of_documents.sum().to_numpy(), of_documents.size().to_numpy() / len(y)
    if len(sums) < 2:
        return np.nan, np.nan
    error = np.sqrt((sums**2 / (1 - share)).sum()) / len(y)
    margin = stdtrit(max(1.0, effective_groups(documents) - 1), (1 + CONFIDENCE) / 2) * error
    return y.mean() - margin, y.mean() + margin


def text_bins(density: pd.DataFrame) -> pd.DataFrame:
    """The table `text_bins` of a table `text_density`; without perplexities, it has no rows.

    Local and random parts are only there with an approximation.
    """
    density = density.rename(columns={"n_characters": "length", "segment_id": "string_id"})
    return _tabulated(density, OUTCOMES_OF_TEXT, tuple(X_OF_PART), TEXT_BINS, _of_text)


def _of_text(part: str, kernel: str, bandwidth: float) -> float:
    """The magnitude, in `rounding.is_flat`, of a part of the density of users' texts."""
    return OF_DISTANCE if part == DISTANCE else of_log_density(kernel, bandwidth)


def leakage_bins(leakage: pd.DataFrame) -> pd.DataFrame:
    y_of = {PERPLEXITY: "perplexity", ACCURACY: "answer_right"}
    return _tabulated(leakage, y_of, (EXACT, DISTANCE), DENSITY_BINS)


def _tabulated(
    frame: pd.DataFrame,
    y_of: dict[str, str],
    parts: tuple[str, ...],
    kind: Kind,
    magnitude_of: Callable[[str, str, float], float | None] = lambda *_: None,
) -> pd.DataFrame:
    keys = [name for name in kind.names if name not in {"part", *BINS.split()}]
    found = []
    for values, rows in frame.groupby(keys, sort=False):
        about = dict(zip(keys, values, strict=True))
        for part, (outcome, y) in itertools.product(parts, y_of.items()):
            about_strings = rows.columns.intersection(["string_id", "length", "document"])
            strings = rows[about_strings].assign(
                x=rows[X_OF_PART[part]].astype(float), y=rows[y].astype(float)
            )
            magnitude = magnitude_of(part, about["kernel"], about["bandwidth"])
            bins = binned(strings, outcome, magnitude=magnitude)
            if not bins.empty:
                found.append(bins.assign(**about, part=part))
    return pd.concat(found)[kind.names] if found else kind.schema.empty_table().to_pandas()
