"""Tables: starts, scores, training_set, learning, averages; from traces and datasets of runs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from palimpsest import traces
from palimpsest.datasets.choices import candidates, in_tokens_of_a_model
from palimpsest.datasets.kinds import STRINGS
from palimpsest.errors import UserError
from palimpsest.making import makes, reads
from palimpsest.memorisation.all_measures import Thresholds, every_measure, measures_by_string
from palimpsest.memorisation.approximation import GAP, StandIns, loss_of_others, stand_ins
from palimpsest.memorisation.kinds import AVERAGES, LEARNING, SCORES, STARTS, TRAINING_SET
from palimpsest.memorisation.measures import (
    Memorisation,
    Start,
    lemma_assumption_broken,
    recollection,
)
from palimpsest.token_losses import TokenLosses
from palimpsest.traces import Trace

# Columns of `training_set` about strings never trained on, and about a perfect learner
UNSEEN = ["share_memorised_unseen", "mean_score_unseen", "below_unseen", "margin_unseen"]
PERFECT = ["share_memorised_perfect", "mean_score_perfect"]
DATASET_KEYS = ["language", "size", "seed", "variant"]
LATE = 0.9  # share of the training after which optimal learning may not be reached yet


@reads(traces=[traces.read], datasets=[STRINGS])
@makes(STARTS, SCORES, TRAINING_SET, LEARNING, AVERAGES)
def memorisation_tables(
    traces: Sequence[Trace],
    datasets: Sequence[pd.DataFrame],
    start: Start,
    loss_threshold: float,
    accuracy_threshold: float,
    stand_in_gap: float = GAP,
) -> dict[str, pd.DataFrame]:
    """Memorisation and learning of one model on one language, size and variant, for each seed.

    Parameters
    ----------
    traces : one per seed
    datasets : tables `strings`, in the order of the traces
    others : see `palimpsest.memorisation.all_measures.Thresholds`

    Raises `UserError` if a trace and its dataset belong to different runs, or if no unseen string
    can stand in.

    Source: sections 3 and 4; counterfactual and contextual memorisation by section 3.3.
    """
    thresholds = Thresholds(start, loss_threshold, accuracy_threshold, stand_in_gap)
    parts = [run_tables(*run, thresholds) for run in paired(traces, datasets)]
    stacked = {
        kind: pd.concat([part[kind] for part in parts], ignore_index=True) for kind in parts[0]
    }
    return {**stacked, "averages": averages(stacked["training_set"], stacked["learning"])}


def averages(training_set: pd.DataFrame, learning: pd.DataFrame) -> pd.DataFrame:
    """Mean and spread over the seeds of the quantities of `training_set` and `learning`."""
    group = ["model", "language", "size", "variant"]
    of_measures = training_set.drop(columns=["seed", "evidence", "assumption_broken"])
    of_runs = learning.drop(columns=["seed", "n_train", "still_learning"]).assign(measure=None)
    long = pd.concat(
        [
            table.melt([*group, "measure", "epoch"], var_name="quantity")
            for table in (of_measures, of_runs)
        ]
    )
    keys = [*group, "measure", "quantity", "epoch"]
    spread = long.groupby(keys, sort=False, dropna=False)["value"]
    return spread.agg(n_seeds="count", mean="mean", std="std", min="min", max="max").reset_index()


def run_tables(
    trace: Trace, strings: pd.DataFrame, thresholds: Thresholds
) -> dict[str, pd.DataFrame]:
    train = strings[strings["count"] > 0]
    trained = restrict(trace, train)
    proxies, proxy_loss = stand_in_losses(trace, strings, train, thresholds.stand_in_gap)
    loss_without = {"same-frequency": proxy_loss}
    measured = measured_strings(trained, train, loss_without, thresholds)
    unseen = measured_unseen(trace, strings, thresholds)
    perfect = of_perfect_learner(train, proxies, thresholds)
    learning = learning_table(trace, strings)
    optimum = int(np.searchsorted(trace.epochs, learning["optimal_epoch"].iloc[0]))
    broken = lemma_assumption_broken(trained.loss, proxy_loss)[1]
    starts, scores, training_set = [], [], []
    for (measure, evidence), result in measured.items():
        approximated = evidence in loss_without
        keys = {**trace.run, "measure": measure, "evidence": evidence}
        gap = proxies.gap if approximated else np.nan
        others = unseen.get((measure, evidence))
        beside = stand_ins_at_optimum(proxies, others, optimum)
        rows = start_rows(keys, train, trace.epochs, result, optimum)
        starts.append(rows.assign(**beside, stand_in_gap=gap))
        scores.append(score_rows(keys, trained, result))
        share = broken if approximated else np.nan
        placebos = {
            **dict.fromkeys((*UNSEEN, "below_unseen_covered", *PERFECT), np.nan),
            **false_alarms(others, unseen.get(("contextual", "same-frequency"))),
            **perfect.get((measure, evidence), {}),
        }
        training_set.append(
            dataset_rows(
                {**keys, **placebos}, train["count"], trace.epochs, result, proxies.exist, share
            )
        )
    return {
        "starts": pd.concat(starts, ignore_index=True),
        "scores": pd.concat(scores, ignore_index=True),
        "training_set": pd.concat(training_set, ignore_index=True),
        "learning": learning,
    }


def measured_strings(
    trace: Trace,
    strings: pd.DataFrame,
    loss_without: dict[str, np.ndarray],
    thresholds: Thresholds,
) -> dict[tuple[str, str], Memorisation]:
    """Every measure of a trace's strings; `strings` has the same strings in the same order."""
    optimal = strings["optimal_loss"].to_numpy()
    return every_measure(trace.loss, 1 - trace.accuracy, optimal, loss_without, thresholds)


def measured_unseen(
    trace: Trace, strings: pd.DataFrame, thresholds: Thresholds
) -> dict[tuple[str, str], Memorisation]:
    """The unseen strings under every measure and evidence, as if they were training strings.

    Unseen strings are distinct strings that may stand in: they were never trained on. For each of
    them, the other unseen strings stand in. A single unseen string has no stand-ins, so measures
    that need stand-ins are left out.
    """
    unseen = strings[candidates(strings)]
    never_trained = restrict(trace, unseen)
    without = {}
    if len(unseen) > 1:
        optimal, n_tokens = unseen["optimal_loss"].to_numpy(), never_trained.n_tokens
        others = loss_of_others(never_trained.loss, optimal, n_tokens, thresholds.stand_in_gap)
        without["same-frequency"] = others
    return measured_strings(never_trained, unseen, without, thresholds)


def false_alarms(
    unseen: Memorisation | None, with_stand_ins: Memorisation | None
) -> dict[str, np.ndarray]:
    """Columns of `training_set` about the unseen strings under one measure.

    `with_stand_ins` is the result of a measure that needs stand-ins; None if there are none.
    """
    if unseen is None:
        return {}
    equally = np.ones(len(unseen.start))
    shares = {
        "share_memorised_unseen": share_of(unseen.memorised, unseen, equally),
        "mean_score_unseen": share_of(unseen.score, unseen, equally),
        "below_unseen": share_of(unseen.is_below, unseen, equally),
        "margin_unseen": share_of(unseen.margin, unseen, equally),
    }
    if with_stand_ins is None:
        return shares
    covered = share_of(unseen.is_below, unseen, with_stand_ins.is_known.astype(float))
    return {**shares, "below_unseen_covered": covered}


def stand_ins_at_optimum(
    proxies: StandIns, unseen: Memorisation | None, optimum: int
) -> dict[str, np.ndarray | float]:
    if unseen is None:
        return {"below_unseen": np.nan, "margin_unseen": np.nan}
    at_optimum = {"below_unseen": unseen.is_below[optimum], "margin_unseen": unseen.margin[optimum]}
    return {
        name: proxies.mean_of(np.where(unseen.is_known, values, np.nan))
        for name, values in at_optimum.items()
    }


def of_perfect_learner(
    train: pd.DataFrame, proxies: StandIns, thresholds: Thresholds
) -> dict[tuple[str, str], dict[str, float]]:
    """Columns of `training_set` about a model that knows the language and nothing else.

    Its loss on every string, trained on or not, is the Bayes-optimal loss. It memorised nothing, so
    a measure that calls its strings memorised measures something else. Accuracy is left out: the
    Bayes-optimal loss does not decide it.
    """
    loss, start = train["optimal_loss"].to_numpy()[None], thresholds.start
    without = {"same-frequency": proxies.loss(proxies.optimal_unseen[None])}
    measured = {
        ("recollection", "constant"): recollection(loss, thresholds.loss_threshold, start),
        **measures_by_string(loss, loss[0], without, start),
    }
    count = train["count"].to_numpy()
    return {
        key: {
            "share_memorised_perfect": share_of(result.memorised, result, count)[0],
            "mean_score_perfect": share_of(result.score, result, count)[0],
        }
        for key, result in measured.items()
    }


def share_of(values: np.ndarray, result: Memorisation, weights: np.ndarray) -> np.ndarray:
    """Weighted mean [epochs] of values [epochs, strings] over the strings that have a threshold.

    NaN if there is no such string.
    """
    known = result.is_known
    total = weights[known].sum()
    if total == 0:
        return np.full(len(values), np.nan)
    return values[:, known] @ weights[known] / total


def start_rows(
    keys: dict, train: pd.DataFrame, epochs: np.ndarray, result: Memorisation, optimum: int
) -> pd.DataFrame:
    """Rows of `starts` for one measure, one per training string, without its stand-ins."""
    return pd.DataFrame(
        {
            **keys,
            **{name: train[name].to_numpy() for name in ("string_id", "count", "log_prob")},
            "start": epoch_of(result.start, epochs),
            "threshold_at_optimum": result.threshold[optimum],
            "score_at_optimum": result.score[optimum],
            "score_at_end": result.score[-1],
            "below_at_optimum": result.below_at(optimum),
            "margin_at_optimum": result.margin[optimum],
        }
    )


def score_rows(keys: dict, trained: Trace, result: Memorisation) -> pd.DataFrame:
    """Rows of `scores` for one measure, sorted by epoch."""
    n_epochs, n_strings = result.score.shape
    return pd.DataFrame(
        {
            **keys,
            "string_id": np.tile(trained.string_ids, n_epochs),
            "epoch": np.repeat(trained.epochs, n_strings),
            "loss": trained.loss.ravel(),
            "threshold": result.threshold.ravel(),
            "score": result.score.ravel(),
        }
    )


def dataset_rows(
    keys: dict,
    count: pd.Series,
    epochs: np.ndarray,
    result: Memorisation,
    covered: np.ndarray,
    broken: float,
) -> pd.DataFrame:
    """Rows of `training_set` for one measure: the multiset and its distinct strings.

    `covered` is bool[strings]: whether a string has stand-ins.

    Source: section 4, "Memorization Score of a Dataset"; footnote 2 for the band.
    """
    copies, equally = count.to_numpy(), np.ones(len(count))
    starts = epoch_of(result.start[result.is_known], epochs)
    started = starts[np.isfinite(starts)]
    late = np.where(np.isfinite(starts), starts, epochs[-1] + 1.0)
    inner = np.quantile(late, [0.1, 0.9]) if late.size else (np.nan, np.nan)
    return pd.DataFrame(
        {
            **keys,
            "epoch": epochs,
            "coverage": copies[result.is_known].sum() / copies.sum(),
            "share_memorised": share_of(result.memorised, result, copies),
            "mean_score": share_of(result.score, result, copies),
            "share_memorised_distinct": share_of(result.memorised, result, equally),
            "mean_score_distinct": share_of(result.score, result, equally),
            "below_distinct": share_of(result.is_below, result, equally),
            "margin_distinct": share_of(result.margin, result, equally),
            "below_covered": share_of(result.is_below, result, covered.astype(float)),
            "band_first": started.min() if started.size else np.nan,
            "band_last": started.max() if started.size else np.nan,
            "never_starts": np.isnan(starts).mean() if starts.size else np.nan,
            "start_p10": inner[0],
            "start_p90": inner[1],
            "assumption_broken": broken,
        }
    )


def learning_table(trace: Trace, strings: pd.DataFrame) -> pd.DataFrame:
    """The table `learning` of one run.

    Losses are per token of the whole set, with copies. Test strings that were seen in training
    count for the test loss, too: the model learns the language, and this includes strings that
    occur again.
    """
    trace = restrict(trace, strings)
    count = strings["count"].to_numpy()
    test_count = strings["test_count"].to_numpy()
    unseen = test_count * candidates(strings)
    optimal = strings["optimal_loss"].to_numpy() * trace.n_tokens
    optimal_of_test = strings["optimal_loss"].to_numpy()[test_count > 0]
    test_loss = per_token(trace.nll, trace, test_count)
    optimal_epoch = trace.epochs[test_loss.argmin()]
    return pd.DataFrame(
        {
            **trace.run,
            "epoch": trace.epochs,
            "train_loss": per_token(trace.nll, trace, count),
            "train_loss_distinct": per_token(trace.nll, trace, (count > 0).astype(int)),
            "test_loss": test_loss,
            "unseen_loss": per_token(trace.nll, trace, unseen),
            "train_accuracy": per_token(trace.n_correct, trace, count),
            "test_accuracy": per_token(trace.n_correct, trace, test_count),
            "test_loss_distinct": trace.loss[:, test_count > 0].mean(axis=1),
            "test_spread": trace.loss[:, test_count > 0].std(axis=1),
            "optimal_train_loss": per_token(optimal, trace, count),
            "optimal_test_loss": per_token(optimal, trace, test_count),
            "optimal_test_loss_distinct": optimal_of_test.mean(),
            "optimal_test_spread": optimal_of_test.std(),
            "optimal_epoch": optimal_epoch,
            "n_train": count.sum(),
            "still_learning": optimal_epoch > LATE * trace.epochs[-1],
        }
    )


def per_token(total: np.ndarray, trace: Trace, count: np.ndarray) -> np.ndarray | float:
    """Mean per token of `total` [..., strings], the sums over the tokens of each string.

    A string counts `count` times. NaN if all counts are 0.
    """
    if not count.any():
        return np.full(total.shape[:-1], np.nan)[()]
    return total @ count / (trace.n_tokens @ count)


def stand_in_losses(
    trace: Trace, strings: pd.DataFrame, train: pd.DataFrame, stand_in_gap: float = GAP
) -> tuple[StandIns, np.ndarray]:
    """Stand-ins of `train` among the unseen strings, and their loss float[epochs, train]."""
    unseen = strings[candidates(strings)]
    optimal = (table["optimal_loss"] for table in (train, unseen))
    try:
        proxies = stand_ins(*optimal, restrict(trace, train).n_tokens, stand_in_gap)
    except UserError as error:
        raise UserError(f"{run_name(trace.run)}: {error}") from None
    return proxies, proxies.loss(restrict(trace, unseen).loss)


def restrict(trace: Trace, strings: pd.DataFrame) -> Trace:
    """The trace of the given strings only, in their order; UserError if the trace lacks one."""
    try:
        chosen = trace.column_of(strings["string_id"].to_numpy())
    except KeyError as error:
        raise UserError(
            f"{run_name(trace.run)}: the dataset has a string that is {error.args[0]}; "
            "the trace is of an older dataset: delete it and rerun"
        ) from None
    return replace(
        trace,
        string_ids=trace.string_ids[chosen],
        n_tokens=trace.n_tokens[chosen],
        nll=trace.nll[:, chosen],
        n_correct=trace.n_correct[:, chosen],
        rank_sum=trace.rank_sum[:, chosen],
    )


def paired(
    traces: Sequence[Trace], datasets: Sequence[pd.DataFrame]
) -> Iterator[tuple[Trace, pd.DataFrame]]:
    """Yield each run's trace and its dataset; `UserError` unless they are of the same runs."""
    if len(traces) != len(datasets):
        raise UserError(f"{len(traces)} traces and {len(datasets)} datasets: give one per trace")
    for trace, strings in zip(traces, datasets, strict=True):
        yield trace, of_run(trace, strings)


def of_run(trace: Trace | TokenLosses, strings: pd.DataFrame) -> pd.DataFrame:
    """The dataset of a run, with the numbers of tokens of its model and the optimal losses by them.

    Raises `UserError` unless the trace is of a run on this dataset, with known probabilities.
    """
    _check_same_run(trace, strings)
    place = pd.Index(trace.string_ids).get_indexer(strings["string_id"])
    n_tokens = np.where(place >= 0, trace.n_tokens[place], strings["n_tokens"])
    return in_tokens_of_a_model(strings, n_tokens)


def _check_same_run(trace: Trace | TokenLosses, strings: pd.DataFrame) -> None:
    dataset = strings[DATASET_KEYS].iloc[0].to_dict()
    if any(trace.run[key] != dataset[key] for key in DATASET_KEYS):
        raise UserError(
            f"the trace of {run_name(trace.run)} is paired with the dataset of "
            f"{run_name(dataset)}; traces and datasets must be given in the same order"
        )
    if strings["log_prob"].isna().any():
        raise UserError(
            f"{run_name(dataset)}: the strings of a text have no known probabilities; the measures "
            "of memorisation need a language that has a grammar"
        )


def run_name(run: dict) -> str:
    """The name of a run in paths, `model/language/n64-seed0/variant`; a dataset has no model."""
    model = f"{run['model']}/" if "model" in run else ""
    return f"{model}{run['language']}/n{run['size']}-seed{run['seed']}/{run['variant']}"


def epoch_of(start: np.ndarray, epochs: np.ndarray) -> np.ndarray:
    """Epochs float[n] of starts given as epoch indices; NaN stays NaN."""
    started = np.isfinite(start)
    return np.where(started, epochs[np.where(started, start, 0).astype(int)], np.nan)
