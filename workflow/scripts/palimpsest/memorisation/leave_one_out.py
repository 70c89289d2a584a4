"""Leave-one-out: memorisation of every training string by retraining without the string.

For each distinct string of a training set, one model is retrained on the set without any copy of
the string, with the same seed, initial weights and recipe. This gives exact counterfactual and
contextual memorisation of the whole set. The same-frequency approximation and the Bayes-optimal
loss need only the one run with all strings; they are compared with the exact values.

Source: Learning Without Memorizing Considered Infeasible, sections 3.1 and 3.3. The measurement of
the approximation is Palimpsest's own.
"""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from palimpsest.errors import UserError
from palimpsest.memorisation.approximation import GAP
from palimpsest.memorisation.measures import (
    Memorisation,
    Start,
    lemma_assumption_broken,
    measures_by_string,
)
from palimpsest.memorisation.runs import (
    check_same_run,
    epoch_of,
    learning_table,
    restrict,
    run_name,
    stand_in_losses,
)
from palimpsest.memorisation.targets import CHEAPER
from palimpsest.traces import Trace
from palimpsest.variants import LEAVE_ONE_OUT, string_left_out

RUN = ["model", "language", "size", "seed"]
STRING = ["string_id", "count", "log_prob"]
QUANTITIES = ["threshold", "start", "score_at_optimum", "score_at_end"]

CONFIDENCE = 0.95
RESAMPLES = 1000
BOOTSTRAP_SEED = 0
TIE = 9  # decimals before ranking, because equal values differ in their last digits


def leave_one_out_tables(
    traces: list[Trace],
    datasets: list[pd.DataFrame],
    left_out: Iterable[list[Trace]],
    start: Start,
    largest_gap: float = GAP,
) -> dict[str, pd.DataFrame]:
    """Exact and approximate memorisation of every training string, and their differences.

    Parameters
    ----------
    traces : list of Trace, one per seed: the run on the whole training set
    datasets : list of `strings` tables, in the order of `traces`
    left_out : for every seed, in the same order, the runs without-{string_id}
        One run for each distinct training string, in any order. The iterable is read one seed at a
        time.
    start : "after_last_miss" or "first_crossing"
    largest_gap : float, nats; see `palimpsest.memorisation.stand_ins`

    Returns
    -------
    dict with the tables `leave_one_out` and `approximation`.

    Raises
    ------
    UserError
        If the run without some training string is missing, or if the runs do not fit together.
    """
    if len(traces) != len(datasets):
        raise UserError(f"{len(traces)} traces and {len(datasets)} datasets: give one per trace")
    rows = pd.concat(
        [
            string_rows(trace, strings, without, start, largest_gap)
            for trace, strings, without in zip(traces, datasets, left_out, strict=True)
        ],
        ignore_index=True,
    )
    return {"leave_one_out": rows, "approximation": approximation_table(rows)}


def string_rows(
    trace: Trace,
    strings: pd.DataFrame,
    left_out: list[Trace],
    start: Start,
    largest_gap: float,
) -> pd.DataFrame:
    """The table `leave_one_out` of one seed."""
    check_same_run(trace, strings)
    train = strings[strings["count"] > 0]
    loss = restrict(trace, train).loss
    without = {
        "retraining": losses_left_out(trace, train, left_out),
        "same-frequency": stand_in_losses(trace, strings, train, largest_gap)[1],
    }
    measured = measures_by_string(loss, train["optimal_loss"].to_numpy(), without, start)
    optimal_epoch = learning_table(trace, strings)["optimal_epoch"].iloc[0]
    optimum = int(np.searchsorted(trace.epochs, optimal_epoch))
    parts = []
    for key, result in measured.items():
        measure, evidence = key
        influence = broken = np.nan
        if evidence in without:
            influence = (without[evidence] - loss).mean(axis=0)
            broken = lemma_assumption_broken(loss, without[evidence])[0]
        distance, ratio = threshold_distance(result, measured[CHEAPER.get(key, key)])
        parts.append(
            train[STRING].assign(
                **{name: trace.run[name] for name in RUN},
                measure=measure,
                evidence=evidence,
                threshold=result.threshold.mean(axis=0),
                threshold_distance=distance,
                threshold_ratio=ratio,
                start=epoch_of(result.start, trace.epochs),
                score_at_optimum=result.score[optimum],
                score_at_end=result.score[-1],
                self_influence=influence,
                assumption_broken=broken,
            )
        )
    return pd.concat(parts, ignore_index=True)


def losses_left_out(trace: Trace, train: pd.DataFrame, left_out: list[Trace]) -> np.ndarray:
    """The loss float[epochs, train] of every training string in the run trained without it."""
    name = run_name({**trace.run, "variant": LEAVE_ONE_OUT})
    remedy = "the trace is of another dataset or recipe: delete it and rerun"
    runs = {string_left_out(run.run["variant"]): run for run in left_out}
    missing = [string for string in train["string_id"] if string not in runs]
    if missing:
        raise UserError(
            f"{name}: no run without the training string {missing[0]} "
            f"({len(train) - len(missing)} of {len(train)} have one); {remedy}"
        )
    if len(left_out) != len(train):
        raise UserError(f"{name}: {len(left_out)} runs for {len(train)} training strings; {remedy}")
    for run in left_out:
        what = f"{name}: the run {run.run['variant']}"
        if any(run.run[key] != trace.run[key] for key in RUN):
            raise UserError(f"{what} is of {run_name(run.run)}; {remedy}")
        if not np.array_equal(run.string_ids, trace.string_ids):
            raise UserError(
                f"{what} has other strings, or another order of them, than "
                f"{run_name(trace.run)}; {remedy}"
            )
        if not np.array_equal(run.epochs, trace.epochs):
            raise UserError(
                f"{what} was measured at other epochs than {run_name(trace.run)}; {remedy}"
            )
    columns = zip(train["string_id"], trace.column_of(train["string_id"]), strict=True)
    return np.stack([runs[string].loss[:, column] for string, column in columns], axis=1)


def threshold_distance(cheap: Memorisation, exact: Memorisation) -> tuple[np.ndarray, np.ndarray]:
    """Distance float[strings] between two thresholds: in nats per token, and relative.

    Both are means over the epochs. The relative distance is divided by the exact threshold, and is
    NaN if the exact threshold is ever 0. Both are NaN for a string without stand-ins.
    """
    distance = np.abs(cheap.threshold - exact.threshold)
    undefined = np.full_like(distance, np.nan)
    ratio = np.divide(distance, exact.threshold, out=undefined, where=exact.threshold > 0)
    return distance.mean(axis=0), ratio.mean(axis=0)


def side_by_side(leave_one_out: pd.DataFrame) -> pd.DataFrame:
    """Pairs of values: every quantity of every string, by a cheaper threshold and by retraining.

    One row per run, string, cheaper measure and evidence, and quantity. The columns are `exact`,
    `approximate`, their `distance` and, for thresholds only, the `ratio` of the distance to the
    exact value. For thresholds, distance and ratio are means over the epochs.
    """
    keys = [*RUN, "string_id", "quantity"]
    long = leave_one_out.melt(
        [*RUN, *STRING, "measure", "evidence", "threshold_distance", "threshold_ratio"],
        QUANTITIES,
        "quantity",
        "approximate",
    )
    # A string without stand-ins is compared with nothing.
    has_evidence = leave_one_out["threshold"].notna().to_numpy()
    long = long[np.tile(has_evidence, len(QUANTITIES))]
    by_evidence = dict(list(long.groupby(["measure", "evidence"])))
    parts = []
    for cheap, exactly in CHEAPER.items():
        exact = by_evidence[exactly].rename(columns={"approximate": "exact"})
        parts.append(by_evidence[cheap].merge(exact[[*keys, "exact"]], on=keys))
    pairs = pd.concat(parts, ignore_index=True)
    is_threshold = pairs["quantity"] == "threshold"
    distance = (pairs["approximate"] - pairs["exact"]).abs()
    distance = distance.mask(is_threshold, pairs.pop("threshold_distance"))
    ratio = pairs.pop("threshold_ratio").where(is_threshold)
    return pairs.assign(distance=distance, ratio=ratio)


def approximation_table(leave_one_out: pd.DataFrame) -> pd.DataFrame:
    """The table `approximation`: statistics of each cheaper threshold for each group of strings."""
    pairs = side_by_side(leave_one_out)
    groups = {
        "all": pairs,
        "repeated": pairs[pairs["count"] > 1],
        "single": pairs[pairs["count"] == 1],
    }
    by = [*RUN, "measure", "evidence", "quantity"]
    rows = [
        {**dict(zip(by, key, strict=True)), "group": group, **statistic}
        for group, members in groups.items()
        for key, strings in members.groupby(by, sort=False)
        for statistic in statistics(strings, key[-1])
    ]
    return pd.DataFrame(rows)


def statistics(pairs: pd.DataFrame, quantity: str) -> list[dict]:
    """One row per statistic: number of strings, value and interval, for one quantity."""
    exact, approximate = pairs["exact"].to_numpy(), pairs["approximate"].to_numpy()
    means = {"mean_error": approximate - exact, "mean_absolute_error": pairs["distance"].to_numpy()}
    if quantity == "threshold":
        means["mean_relative_error"] = pairs["ratio"].to_numpy()
    elif quantity == "start":
        means["same_verdict"] = np.isfinite(approximate) == np.isfinite(exact)
    else:
        means["same_verdict"] = (approximate > 0) == (exact > 0)
    resampled = np.random.default_rng(BOOTSTRAP_SEED).integers(
        len(pairs), size=(RESAMPLES, len(pairs))
    )
    # A string that never starts ranks last.
    ranked = [np.nan_to_num(values, nan=np.inf, posinf=np.inf) for values in (exact, approximate)]
    found = {
        "correlation": (
            len(pairs),
            rank_correlation(*ranked),
            rank_correlation(*(values[resampled] for values in ranked)),
        )
    }
    for name, values in means.items():
        values = values.astype(float)
        n = int(np.isfinite(values).sum())
        found[name] = (n, mean_of_defined(values), mean_of_defined(values[resampled]))
    return [
        {
            "statistic": name,
            "n_strings": n,
            "value": float(value),
            **dict(zip(("lower", "upper"), interval(n, value, of_resamples), strict=True)),
        }
        for name, (n, value, of_resamples) in found.items()
    ]


def rank_correlation(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Spearman's correlation [...] of x and y float[..., strings]; NaN if either is constant.

    Values that are equal to nine decimals are ties, and get their mean rank.
    """
    # Imported here, because every job that measures imports this package, and scipy loads slowly.
    from scipy.stats import rankdata

    x, y = (rankdata(np.round(values, TIE), axis=-1) for values in (x, y))
    x, y = (ranks - ranks.mean(axis=-1, keepdims=True) for ranks in (x, y))
    spread = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    undefined = np.full_like(spread, np.nan)
    return np.divide((x * y).sum(axis=-1), spread, out=undefined, where=spread > 0)


def mean_of_defined(values: np.ndarray) -> np.ndarray:
    """Mean [...] of float[..., strings] over the strings with finite values; NaN if none has."""
    defined = np.isfinite(values)
    n = defined.sum(axis=-1)
    total = np.where(defined, values, 0).sum(axis=-1)
    return np.divide(total, n, out=np.full(np.shape(total), np.nan), where=n > 0)


def interval(n: int, value: float, of_resamples: np.ndarray) -> tuple[float, float]:
    """Ends of the 95 % percentile interval; NaN for an undefined value or fewer than 2 strings.

    Resamples in which the statistic is undefined are left out.
    """
    if n < 2 or np.isnan(value):
        return np.nan, np.nan
    tails = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    return tuple(np.nanquantile(of_resamples, tails))
