"""Extraction: the probability that a model produces a string within some number of samples.

A trace holds the exact probability of every string under its model, so nothing is sampled here.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from palimpsest import traces
from palimpsest.allowed import checked_numbers
from palimpsest.memorisation.leave_one_out import losses_of, runs_without, strings_left_out
from palimpsest.memorisation.likelihoods import TRAIN, by_group, read_runs
from palimpsest.traces import Trace

# 1, 2, 5, 10, ..., 1,000,000
SAMPLES = np.array([n * 10**power for power in range(6) for n in (1, 2, 5)] + [10**6])
LIKELY = 0.5  # the p of (n, p)-discoverable extraction


def extraction_probability(log_probability: ArrayLike, samples: ArrayLike) -> np.ndarray:
    """The probability that a string is among k independent samples: 1 - (1 - p)^k.

    Parameters
    ----------
    log_probability : float[...], nats
        Log of the probability p of the string in one sample: minus the `nll` of a trace. A sample
        starts with the start token alone and is drawn at temperature 1. If the ends of strings are
        not predicted (`predict_end: false`), p is the probability that a sample *begins* with the
        string.
    samples : int[...], the number k, at least 1; broadcast against `log_probability`

    Returns float[...] in [0, 1]; about k p, and not 0, where p is too small for 1 - p.

    Raises `ValueError` if a log probability is above 0 or NaN, or if a number of samples is below
    1.

    Source: Measuring memorization in language models via probabilistic extraction (arXiv
    2410.19482): a string is (n, p)-discoverably extractable if this probability is at least p for
    k = n. The paper prompts the model with the beginning of the string; here the prompt is empty.
    """
    log_probability = checked_numbers("log_probability", log_probability)
    samples = checked_numbers("samples", samples)
    if not (log_probability <= 0).all():
        raise ValueError("log_probability: must be at most 0, and not NaN")
    if not ((samples >= 1) & np.isfinite(samples)).all():
        raise ValueError("samples: must be at least 1, and finite")
    with np.errstate(divide="ignore"):  # a certain string: log1p(-1) is -inf, as it should be
        missed_once = np.log1p(-np.exp(log_probability))
    return -np.expm1(samples * missed_once)


def extraction_table(
    paths: list[str], left_out: list[str], strings: pd.DataFrame, learning: pd.DataFrame
) -> pd.DataFrame:
    """The table `extraction` of some runs.

    Parameters
    ----------
    paths : traces of the runs
    left_out : traces of leave-one-out, for some or none of the runs
    strings, learning : stacked tables of these kinds

    Raises `UserError` if a run has no dataset or no learning, or if a trace of leave-one-out does
    not fit its run.
    """
    runs = {
        run_key(trace): (trace, dataset, optimum)
        for trace, dataset, optimum in read_runs(paths, strings, learning)
    }
    without = {}
    for path in left_out:
        retrained = traces.read_all(path)
        trace, dataset, _ = runs[run_key(retrained[0])]
        train = strings_left_out(trace, dataset, retrained)
        loss = losses_of(train["string_id"], runs_without(trace, train, retrained))
        without[run_key(trace)] = train, loss * train["n_tokens"].to_numpy()
    parts = [extraction_rows(*run, *without.get(key, (None, None))) for key, run in runs.items()]
    return pd.concat(parts, ignore_index=True)


def run_key(trace: Trace) -> tuple:
    """Identifies a run on the whole training set, and the runs of its leave-one-out."""
    return tuple(trace.run[name] for name in ("model", "language", "size", "seed"))


def extraction_rows(
    trace: Trace,
    strings: pd.DataFrame,
    optimal_epoch: int,
    left_out: pd.DataFrame | None,
    nll_without: np.ndarray | None,
) -> pd.DataFrame:
    """The table `extraction` of one run.

    `left_out` are the rows of `strings` that some runs leave out. `nll_without` is float[epochs,
    left out] in nats: of each string in the run trained without it. Both are None if there are
    no such runs. If there are, the group of the training strings has only these strings, so that
    all sources are compared on equal strings.
    """
    if left_out is not None:
        is_here = strings["string_id"].isin(left_out["string_id"]) | (strings["count"] == 0)
        strings = strings[is_here]
    nll = {}
    for group, likelihoods in by_group(trace, strings).items():
        nll[group, "model"] = likelihoods.nll
        nll[group, "language"] = np.broadcast_to(likelihoods.language_nll, likelihoods.nll.shape)
    if nll_without is not None:
        nll[TRAIN, "retraining"] = nll_without
    parts = []
    for moment, epoch in (("optimum", optimal_epoch), ("end", int(trace.epochs[-1]))):
        row = int(np.searchsorted(trace.epochs, epoch))
        for (group, source), values in nll.items():
            if values.shape[1]:
                keys = {"moment": moment, "epoch": epoch, "group": group, "source": source}
                parts.append(sample_rows({**trace.run, **keys}, values[row]))
    return pd.concat(parts, ignore_index=True)


def sample_rows(keys: dict, nll: np.ndarray) -> pd.DataFrame:
    """Rows of `extraction`, one per number of samples, from the nll float[strings] of strings."""
    # Rounding can leave the nll of a certain string just below 0.
    found = extraction_probability(np.minimum(-nll, 0)[:, None], SAMPLES)
    return pd.DataFrame(
        {
            **keys,
            "n_strings": len(nll),
            "samples": SAMPLES,
            "probability": found.mean(axis=0),
            "share_likely": (found >= LIKELY).mean(axis=0),
        }
    )
