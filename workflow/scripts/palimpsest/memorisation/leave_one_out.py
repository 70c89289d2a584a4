"""Leave-one-out: memorisation of every training string by retraining without the string.

For each distinct string of a training set, or for a sample of them, one model is retrained on the
set without any copy of the string, with the same seed, initial weights and recipe. This gives exact
counterfactual and contextual memorisation. Its placebo is a string that neither training has seen.
The same-frequency approximation and the Bayes-optimal loss need only the one run with all strings;
they are compared with the exact values.

Source: Learning Without Memorizing Considered Infeasible, sections 3.1 and 3.3. The measurement of
the approximation is Palimpsest's own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from palimpsest import traces
from palimpsest.datasets.choices import placebo_of
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.making import makes, reads
from palimpsest.memorisation import kinds
from palimpsest.memorisation.all_measures import COMPARED, measures_by_string
from palimpsest.memorisation.approximation import GAP
from palimpsest.memorisation.measures import Memorisation, Start, lemma_assumption_broken
from palimpsest.memorisation.runs import (
    epoch_of,
    learning_table,
    paired,
    restrict,
    run_name,
    stand_in_losses,
)
from palimpsest.memorisation.targets import CHEAPER
from palimpsest.regimes import LEAVE_ONE_OUT, string_left_out
from palimpsest.statistics import is_constant
from palimpsest.traces import Trace

RUN = ["model", "language", "size", "seed"]
STRING = ["string_id", "count", "log_prob"]
QUANTITIES = ["threshold", "start", "score_at_optimum", "score_at_end"]

REMEDY = "the trace is of another dataset or recipe: delete it and rerun"
OF_THE_LANGUAGE = {("bayes", "language")}
# As `CHEAPER`; retraining once more is compared with retraining, too.
CHEAPER_OR_AGAIN = {
    **CHEAPER,
    **{(measure, "replicate"): (measure, "retraining") for measure in COMPARED},
}

CONFIDENCE = 0.95
RESAMPLES = 1000
BOOTSTRAP_SEED = 0
TIE = 9  # decimals before ranking, because equal values differ in their last digits


@reads(
    traces=[traces.read], datasets=[STRINGS], left_out=[traces.read_all], again=[traces.read_all]
)
@makes(kinds.LEAVE_ONE_OUT, kinds.APPROXIMATION)
def leave_one_out_tables(
    traces: Sequence[Trace],
    datasets: Sequence[pd.DataFrame],
    left_out: Iterable[list[Trace]],
    start: Start,
    stand_in_gap: float = GAP,
    again: Iterable[list[Trace]] | None = None,
    counterpart: str | None = None,
) -> dict[str, pd.DataFrame]:
    """Exact and approximate memorisation of training strings, and their differences.

    Parameters
    ----------
    traces : one per seed: the run on the whole training set
    datasets : tables `strings`, in the order of `traces`
    left_out : for every seed, in the same order, the runs without-{string_id}
        One run for each distinct training string or for some of them, in any order. The iterable is
        read one seed at a time.
    start : "after_last_miss" or "first_crossing"
    stand_in_gap : float, nats; see `palimpsest.memorisation.stand_ins`
    again : for every seed, the runs of leave-one-out-again
        The first of them is the run on the whole training set. They say how well retraining agrees
        with itself (evidence `replicate`).
    counterpart : the language's counterpart of high entropy, or None

    Raises `UserError` if a run without some string is missing, or if the runs do not fit together.
    """
    again = again or [()] * len(traces)
    rows = pd.concat(
        [
            string_rows(*run, *others, start, stand_in_gap)
            for run, *others in zip(paired(traces, datasets), left_out, again, strict=True)
        ],
        ignore_index=True,
    )
    rows["counterpart"] = pd.array([counterpart] * len(rows), dtype="string")
    return {"leave_one_out": rows, "approximation": approximation_table(rows)}


@dataclass(frozen=True)
class Compared:
    """The losses of some strings in a run that was trained on them and in runs without them.

    `loss` and `without` are float[epochs, strings] in nats per token. `placebo` and
    `placebo_without` are the losses of each string's placebo in the same runs; none of these runs
    was trained on it. They are NaN if there is no placebo. `learned` has the columns
    `optimal_epoch` and `still_learning` of the first run, and `optimum` is the index of that epoch.
    """

    loss: np.ndarray
    without: np.ndarray
    placebo: np.ndarray
    placebo_without: np.ndarray
    learned: pd.Series
    optimum: int


def string_rows(
    trace: Trace,
    strings: pd.DataFrame,
    left_out: list[Trace],
    again: list[Trace],
    start: Start,
    stand_in_gap: float,
) -> pd.DataFrame:
    """The table `leave_one_out` of one seed, without its counterpart."""
    train = strings_left_out(trace, strings, left_out)
    exact = compared(trace, strings, train, left_out)
    stand_in = stand_in_losses(trace, strings, train, stand_in_gap)[1]
    no_placebo = np.full_like(exact.placebo, np.nan)
    sources = {
        "retraining": exact,
        "same-frequency": replace(exact, without=stand_in, placebo_without=no_placebo),
    }
    if again:
        whole, *others = again
        whole = replace(whole, run={**whole.run, "variant": trace.run["variant"]})
        sources["replicate"] = compared(whole, strings, train, others)
    about = train[STRING].assign(
        **{name: trace.run[name] for name in RUN}, weight=weights(strings, train)
    )
    optimal = train["optimal_loss"].to_numpy()
    measured = {
        evidence: measures_by_string(source.loss, optimal, {evidence: source.without}, start)
        for evidence, source in sources.items()
    }
    exactly, parts = measured["retraining"], []
    for evidence, source in sources.items():
        for key, result in measured[evidence].items():
            if key in OF_THE_LANGUAGE and evidence != "retraining":
                continue  # the language is the same for every source
            distance, ratio = threshold_distance(result, exactly[CHEAPER_OR_AGAIN.get(key, key)])
            rows = measure_rows(key, result, source, trace.epochs, start)
            rows |= {"threshold_distance": distance, "threshold_ratio": ratio}
            parts.append(about.assign(**rows))
    return pd.concat(parts, ignore_index=True).assign(**exact.learned)


def weights(strings: pd.DataFrame, train: pd.DataFrame) -> np.ndarray:
    """Weights float[strings] of strings left out: how many training strings each one represents.

    Repeated strings and others are sampled with different probabilities.
    """
    among, chosen = (rows["count"] > 1 for rows in (strings[strings["count"] > 0], train))
    of_repeated, of_single = (
        (among == group).sum() / max(1, (chosen == group).sum()) for group in (True, False)
    )
    return np.where(chosen, of_repeated, of_single)


def measure_rows(
    key: tuple[str, str], result: Memorisation, source: Compared, epochs: np.ndarray, start: Start
) -> dict:
    measure, evidence = key
    at, n_strings = source.optimum, result.start.size
    influence = broken = np.full(n_strings, np.nan)
    placebo_below = placebo_margin = influence
    if key not in OF_THE_LANGUAGE:
        influence = (source.without - source.loss).mean(axis=0)
        broken = lemma_assumption_broken(source.loss, source.without)[0]
        known = np.isfinite(source.placebo_without).all(axis=0)
        losses = source.placebo[:, known], source.placebo_without[:, known]
        found = COMPARED[measure](*losses, start).among(known)
        placebo_below, placebo_margin = found.below_at(at), found.margin[at]
    return {
        "measure": measure,
        "evidence": evidence,
        "threshold": result.threshold.mean(axis=0),
        "start": epoch_of(result.start, epochs),
        "score_at_optimum": result.score[at],
        "score_at_end": result.score[-1],
        "below_at_optimum": result.below_at(at),
        "margin_at_optimum": result.margin[at],
        "placebo_below_at_optimum": placebo_below,
        "placebo_margin_at_optimum": placebo_margin,
        "self_influence": influence,
        "assumption_broken": broken,
    }


def compared(
    trace: Trace, strings: pd.DataFrame, train: pd.DataFrame, left_out: list[Trace]
) -> Compared:
    """The losses of the strings `train` in the run on all strings and in the run without each."""
    runs = runs_without(trace, train, left_out)
    pairs = zip(train["string_id"], runs, strict=True)
    placebos = [_placebo_in(run, strings, name) for name, run in pairs]
    learned = learning_table(trace, strings)[["optimal_epoch", "still_learning"]].iloc[0]
    return Compared(
        loss=restrict(trace, train).loss,
        without=losses_of(train["string_id"], runs),
        placebo=losses_of(placebos, [trace] * len(runs)),
        placebo_without=losses_of(placebos, runs),
        learned=learned,
        optimum=int(np.searchsorted(trace.epochs, learned["optimal_epoch"])),
    )


def _placebo_in(run: Trace, strings: pd.DataFrame, name: str) -> str | None:
    """The placebo with which a run was measured beside its own string; None if there is none."""
    others = [other for other in run.string_ids if other != name]
    return others[0] if len(others) == 1 else placebo_of(strings, name)


def losses_of(names: Iterable[str | None], runs: list[Trace]) -> np.ndarray:
    """Loss float[epochs, strings], each string's by its own run; NaN for a name that is None.

    Raises `UserError` if a run was not measured on its string.
    """

    def loss(name: str | None, run: Trace) -> np.ndarray:
        if name is None:
            return np.full(len(run.epochs), np.nan)
        if name not in run.string_ids:
            what = f"{_of_leave_one_out(run)}: the run {run.run['variant']}"
            raise UserError(f"{what} was not measured on {name}; {REMEDY}")
        return run.loss[:, run.column_of([name])[0]]

    return np.stack([loss(*each) for each in zip(names, runs, strict=True)], axis=1)


def strings_left_out(trace: Trace, strings: pd.DataFrame, left_out: list[Trace]) -> pd.DataFrame:
    """The training strings of a dataset that the runs leave out, in the dataset's order."""
    train = strings[strings["count"] > 0]
    names = [string_left_out(run.run["variant"]) for run in left_out]
    known = set(train["string_id"])
    strangers = [name for name in names if name not in known]
    if strangers or not names:
        found = f"a run without {strangers[0]}, no training string" if strangers else "no runs"
        raise UserError(f"{_of_leave_one_out(trace)}: {found}; {REMEDY}")
    return train[train["string_id"].isin(names)]


def runs_without(trace: Trace, train: pd.DataFrame, left_out: list[Trace]) -> list[Trace]:
    """The runs without each of the strings `train`, in that order; UserError if they do not fit."""
    name = _of_leave_one_out(trace)
    runs = {string_left_out(run.run["variant"]): run for run in left_out}
    missing = [string for string in train["string_id"] if string not in runs]
    if missing:
        raise UserError(
            f"{name}: no run without the training string {missing[0]} "
            f"({len(train) - len(missing)} of {len(train)} have one); {REMEDY}"
        )
    if len(left_out) != len(train):
        raise UserError(f"{name}: {len(left_out)} runs for {len(train)} training strings; {REMEDY}")
    for run in runs.values():
        what = f"{name}: the run {run.run['variant']}"
        if any(run.run[key] != trace.run[key] for key in RUN):
            raise UserError(f"{what} is of {run_name(run.run)}; {REMEDY}")
        if not np.array_equal(run.epochs, trace.epochs):
            raise UserError(
                f"{what} was measured at other epochs than {run_name(trace.run)}; {REMEDY}"
            )
    return [runs[string] for string in train["string_id"]]


def _of_leave_one_out(trace: Trace) -> str:
    return run_name({**trace.run, "variant": LEAVE_ONE_OUT})


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

    One row per run, string, cheaper measure and evidence, and quantity. The columns are
    `by_retraining`, `approximate`, their `distance` and, for thresholds only, the `ratio` of the
    distance to the exact value. For thresholds, distance and ratio are means over the epochs.
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
    for cheap, exactly in CHEAPER_OR_AGAIN.items():
        if cheap not in by_evidence:
            continue  # nothing was trained again
        exact = by_evidence[exactly].rename(columns={"approximate": "by_retraining"})
        parts.append(by_evidence[cheap].merge(exact[[*keys, "by_retraining"]], on=keys))
    pairs = pd.concat(parts, ignore_index=True)
    is_threshold = pairs["quantity"] == "threshold"
    distance = (pairs["approximate"] - pairs["by_retraining"]).abs()
    distance = distance.mask(is_threshold, pairs.pop("threshold_distance"))
    ratio = pairs.pop("threshold_ratio").where(is_threshold)
    return pairs.assign(distance=distance, ratio=ratio)


def approximation_table(leave_one_out: pd.DataFrame) -> pd.DataFrame:
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
    exact, approximate = pairs["by_retraining"].to_numpy(), pairs["approximate"].to_numpy()
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

    is_known = ~(is_constant(np.moveaxis(x, -1, 0)) | is_constant(np.moveaxis(y, -1, 0)))
    x, y = (rankdata(np.round(values, TIE), axis=-1) for values in (x, y))
    x, y = (ranks - ranks.mean(axis=-1, keepdims=True) for ranks in (x, y))
    spread = np.sqrt((x**2).sum(axis=-1) * (y**2).sum(axis=-1))
    undefined = np.full_like(spread, np.nan)
    return np.divide((x * y).sum(axis=-1), spread, out=undefined, where=is_known & (spread > 0))


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
