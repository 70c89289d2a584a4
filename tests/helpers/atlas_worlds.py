"""Planted runs of the atlas: datasets of a real language, and losses with known removals."""

from dataclasses import dataclass
from unittest.mock import patch

import numpy as np
import pandas as pd

from helpers.commands import ROOT
from palimpsest.atlas import frontier
from palimpsest.atlas.passes import Passes
from palimpsest.atlas.truth import truth_tables
from palimpsest.corpora import GrammarCorpus
from palimpsest.datasets.build import build
from palimpsest.datasets.choices import placebos_of, removed_strings
from palimpsest.datasets.sampling import Sampler
from palimpsest.regimes import WHOLE_AGAIN, of_half, without_string
from palimpsest.token_losses import TokenLosses
from palimpsest.traces import Trace

EPOCHS = np.array([0, 5, 10])
N_HALVES = 16


@dataclass
class PlantedRun:
    """One run and its removals.

    `influence` and `influence_again` float[removed, strings] are planted, in nats per token, and
    `moved` float[removed] is what a removal does to the placebo of the removed string.
    """

    strings: pd.DataFrame
    trace: Trace
    removals: list[Trace]
    again: list[Trace]
    tokens: TokenLosses
    influence: np.ndarray
    influence_again: np.ndarray
    moved: np.ndarray

    @property
    def ids(self) -> np.ndarray:
        return self.strings.loc[self.strings["count"] > 0, "string_id"].to_numpy(dtype=object)


def planted_run(seed: int = 0, noise: float = 0.1, size: int = 24) -> PlantedRun:
    """A run in which a removal raises the loss of the string, and of each other string a little.

    Retraining once more differs by `noise`, relative to the planted effects.
    """
    corpus = GrammarCorpus.from_file(ROOT / "config/languages/L2.pcfg")
    strings = build(Sampler("L2", corpus, seed), "base", size, 12, predict_end=False)
    chance = np.random.default_rng(seed)
    ids = strings.loc[strings["count"] > 0, "string_id"].to_numpy(dtype=object)
    n = len(ids)
    influence = 0.01 * chance.standard_normal((n, n))
    influence[np.arange(n), np.arange(n)] = 0.05 + 0.3 * chance.random(n)
    influence_again = influence * (1 + noise * chance.standard_normal((n, n)))
    moved = 0.01 * chance.standard_normal(n)
    loss = planted_losses(strings, chance)
    base = trace_of(strings, "base", loss, seed)
    whole = loss + 0.05 * chance.random(loss.shape)
    return PlantedRun(
        strings,
        base,
        removals_of(strings, loss, influence, moved, seed),
        [
            trace_of(strings, WHOLE_AGAIN, whole, seed),
            *removals_of(strings, whole, influence_again, moved, seed),
        ],
        tokens_of(base),
        influence,
        influence_again,
        moved,
    )


def planted_losses(strings: pd.DataFrame, chance: np.random.Generator) -> np.ndarray:
    """float[epochs, strings], nats per token; training strings are learned, others less so."""
    falls = np.where(strings["count"] > 0, 0.9, 0.4)
    progress = np.linspace(0, 1, len(EPOCHS))[:, None]
    start = 2.0 + 0.2 * chance.random(len(strings))
    return start * (1 - falls * progress) + 0.02 * chance.random((len(EPOCHS), len(strings)))


def trace_of(strings: pd.DataFrame, variant: str, loss: np.ndarray, seed: int) -> Trace:
    n_tokens = strings["n_tokens"].to_numpy()
    right = (n_tokens * np.clip(1 - loss / 3, 0, 1)).astype(int)
    about = {"model": "m", "language": "L2", "size": int(strings["size"].iloc[0]), "seed": seed}
    return Trace(
        {**about, "variant": variant},
        EPOCHS,
        strings["string_id"].to_numpy(dtype=object),
        n_tokens,
        loss * n_tokens,
        right,
        right,
    )


def removals_of(
    strings: pd.DataFrame, loss: np.ndarray, influence: np.ndarray, moved: np.ndarray, seed: int
) -> list[Trace]:
    """A trace without each training string, and one on each half; effects of a half add up."""
    ids = strings.loc[strings["count"] > 0, "string_id"].to_numpy(dtype=object)
    place = pd.Index(strings["string_id"])
    columns = place.get_indexer(ids)
    grows = np.linspace(0, 1, len(EPOCHS))[:, None]
    found = []
    for name, effect, move, placebo in zip(
        ids, influence, moved, placebos_of(strings, ids), strict=True
    ):
        changed = loss.copy()
        changed[:, columns] += grows * effect
        changed[:, place.get_loc(placebo)] += grows[:, 0] * move
        found.append(trace_of(strings, without_string(name), changed, seed))
    for number in range(N_HALVES):
        removed = np.isin(ids, removed_strings(strings, of_half(number)))
        changed = loss.copy()
        changed[:, columns] += grows * influence[removed].sum(axis=0)
        found.append(trace_of(strings, of_half(number), changed, seed))
    return found


def tokens_of(trace: Trace) -> TokenLosses:
    """Losses of single tokens: the loss of a string, the same at each of its tokens."""
    return TokenLosses(
        trace.run,
        trace.epochs,
        trace.string_ids,
        trace.n_tokens,
        np.repeat(trace.loss, trace.n_tokens, axis=1),
        np.full(trace.n_tokens.sum(), np.nan),
    )


def last_pass_of(runs: list[PlantedRun]) -> pd.DataFrame:
    """The table `last_pass` of runs of one cell; models of other seeds know no string well."""
    rows = [
        {
            **{key: run.trace.run[key] for key in ("model", "language", "size", "seed")},
            "model_seed": other.trace.run["seed"],
            "string_id": name,
            **_of_tokens(loss if other is run else 2.0, n, chance),
            "vector": chance.standard_normal(4),
            "seconds": 2.0,
            **_of_changed(loss if other is run else None),
        }
        for run in runs
        for other in runs
        for chance in [np.random.default_rng([run.trace.run["seed"], other.trace.run["seed"]])]
        for name, n, loss in zip(
            run.trace.string_ids, run.trace.n_tokens, run.trace.loss[-1], strict=True
        )
    ]
    return pd.DataFrame(rows)


def _of_tokens(loss: float, n: int, chance: np.random.Generator) -> dict[str, np.ndarray]:
    return {
        "log_probs": -loss * (1 + 0.1 * chance.random(n)),
        "means": np.full(n, -1.0),
        "deviations": np.full(n, 0.5),
        "ranks": chance.integers(1, 3, n).astype(float),
    }


def _of_changed(loss: float | None) -> dict:
    """What the run's own model says of eight neighbours, and of a string after others."""
    if loss is None:
        losses = {"neighbours": [], "prefixed": [], "lowercase": []}
    else:
        losses = {"neighbours": loss + np.arange(8) / 8, "prefixed": [1.5 * loss], "lowercase": []}
    seconds = {"neighbours": 8.0, "prefixed": 5.0, "lowercase": np.nan}
    return {
        **{name: np.asarray(values, dtype=np.float32) for name, values in losses.items()},
        **{f"{name}_seconds": np.nan if loss is None else of for name, of in seconds.items()},
    }


def passes_of(runs: list[PlantedRun], seed: int = 0) -> Passes:
    """The passes over the strings of one of some runs."""
    rows = last_pass_of(runs)
    datasets = [run.strings for run in runs]
    return Passes.of(rows[rows["seed"] == seed], datasets[seed], datasets)


def manifest(training: float, wall: float, threads: int = 1) -> dict:
    return {
        "training_seconds": training,
        "wall_time_seconds": wall,
        "hardware": {"threads": threads},
        "configuration": {"recipe": {"epochs": 10, "evaluate_every": 5}},
    }


@patch.object(frontier, "RESAMPLES", 20)
def tables_of(runs: list[PlantedRun]) -> dict[str, pd.DataFrame]:
    """The tables of the atlas of one cell, by the names of their kinds; intervals are coarse."""
    traces, datasets = [run.trace for run in runs], [run.strings for run in runs]
    removals, again = [run.removals for run in runs], [run.again for run in runs]
    exact = truth_tables(traces, datasets, removals, again, "after_last_miss")
    costs = [manifest(10.0, 13.0)] * len(runs), [manifest(300.0, 500.0, threads=2)] * len(runs)
    weighed = frontier.frontier_tables(
        traces,
        datasets,
        [run.tokens for run in runs],
        *(exact[name] for name in ("retrained", "influence", "halves")),
        *costs,
        start="after_last_miss",
        loss_threshold=0.2,
        accuracy_threshold=0.95,
        last_pass=last_pass_of(runs),
    )
    return exact | weighed
