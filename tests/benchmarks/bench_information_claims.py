"""How often statistics of the claims on information measures find what is not there, or is.

Run as a script: `python tests/benchmarks/bench_information_claims.py`. One core, four minutes.

Values are the percent of studies whose 95 % interval excludes the bound of the claim, although the
statistic is at this bound. In a row's name stands the exact binomial 95 % interval of our value;
the target is that its lower end is at most 5 %. Worlds are those of
tests/helpers/information_worlds.py. In all of them seeds and layers have levels. `uneven`: the
noise is three times as large at share 1 as at share 0. `heavy tails`: Student's t with 2 degrees of
freedom. `own changes`: every seed has a change of its own, in either direction. The peer takes the
runs of all seeds for independent: a regression, or a test of Pearson's or Kendall's correlation.

`start`: while repeated and fresh strings part, the epoch of the start is like those around it; the
peer compares it with all other epochs, by Student's interval too. `end`: runs on repeated and on
fresh strings are alike; the peer takes the differences after the last five epochs for independent.

For correlations, the bound is 0.5: the world's noise is set so that the mean correlation of seeds,
by Fisher's transformation, is 0.5. `strongest` is of two correlations that are both 0.5; the peer
is Student's interval of the one that is the stronger in the study. The last rows have no target:
the percent of studies that find a change of entropy by 0.1 nats (noise of a run: 0.04), the same
of the order of models and of the epoch of the start (the peer compares it with all other epochs),
and that a measure without any connection to two norms hardly goes with them.
"""

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests")]

from rows import Row, main, shown  # noqa: E402
from rows import false_positives as of_false_positives  # noqa: E402

from helpers.information_worlds import (  # noqa: E402
    DEPTHS,
    ONE_MODEL,
    World,
    information,
    noisy_epochs,
)
from palimpsest.information import epochs  # noqa: E402
from palimpsest.information.claims import claim_statistics as claims  # noqa: E402
from palimpsest.information.interventions import FRESH, REPEATED  # noqa: E402
from palimpsest.information.kinds import MARKERS, SHUFFLES  # noqa: E402
from palimpsest.information.trends import of_intervention, runs_of  # noqa: E402
from palimpsest.statistics import DECIMALS, student  # noqa: E402

SEEDS, STUDIES, FEWER, TINY, LEVEL = (2, 3, 5), 400, 150, 2, 5.0
WORLDS = {
    "normal": World(),
    "uneven": World(uneven=3.0),
    "heavy tails": World(df=2.0, uneven=3.0),
    "own changes": World(of_seed=3.0, uneven=3.0),
}
SLOPES = {
    "entropy": partial(claims.changed, intervention=MARKERS, column="entropy"),
}
ORDERS = {
    "tau": partial(claims.ordered, intervention=MARKERS, column="entropy"),
    "tau, memorised": partial(
        claims.knows, intervention=MARKERS, column="entropy", memorised="memorised"
    ),
    "tau minus norms": partial(claims.ordered_better, intervention=MARKERS, column="entropy"),
}
BEYOND = partial(claims.beyond_random_markers, intervention=SHUFFLES, column="entropy")
EVERY_DEPTH = partial(claims.at_every_depth, intervention=SHUFFLES, column="entropy")
LAST_LAYER = partial(claims.changed_late, intervention=MARKERS, column="entropy")
APART = partial(claims.apart, intervention=SHUFFLES, column="entropy")
LATE = 6  # the first of the last epochs of runs that are fine-tuned
BETWEEN_DEPTHS = 0.64  # nats by which the deepest and the shallowest models of the worlds differ
# Statistics with an interval of their own: name, statistic, changes, models and numbers of seeds.
# Both sizes of `beyond random markers` are 0, or both are 0.2; none of three depths changes.
OF_THEIR_OWN = (
    ("beyond random markers, none", BEYOND, {}, ONE_MODEL, SEEDS),
    (
        "beyond random markers, equal",
        BEYOND,
        {"random_markers": {"entropy": -0.2}, "shuffles": {"entropy": 0.2}},
        ONE_MODEL,
        SEEDS,
    ),
    ("every depth", EVERY_DEPTH, {}, DEPTHS, SEEDS[1:]),
    ("last layer", LAST_LAYER, {}, ONE_MODEL, SEEDS),
    ("apart, equal", APART, {"shuffles": {"entropy": BETWEEN_DEPTHS}}, DEPTHS, SEEDS),
)
# Where strings are learned by heart, the sign of the correlation is that of the change of norms.
CORRELATIONS = {
    "correlation": ("markers", partial(
        claims.correlated,
        intervention=MARKERS,
        column="entropy",
        others=("two_norm",),
        bound=claims.STRONG,
    )),
    "signed correlation": ("shuffles", partial(
        claims.correlated_as_norms_change, intervention=SHUFFLES, column="entropy"
    )),
}  # fmt: skip
STRONGEST = partial(claims.strongest_with_norms, intervention=MARKERS, column="entropy")
MANY = 20  # seeds
# What the peer of a statistic of orders compares entropy with
OTHER_OF = {"tau": "accuracy", "tau, memorised": "memorised", "tau minus norms": "accuracy"}


def excluded(values: np.ndarray, bound: float) -> int:
    """The number of studies, float[studies, seeds], whose interval excludes a bound."""
    found = [student(study, DECIMALS) for study in values]
    # Seeds that are all alike have no interval, and no verdict.
    return sum(
        each.lower < each.upper and (each.lower > bound or each.upper < bound) for each in found
    )


def of_all_seeds(world: World, draw: int, n_seeds: int, estimate: Callable) -> tuple:
    """The values of many independent seeds, and their table."""
    table = information(world, draw, seeds=n_seeds)
    return np.array(estimate(table).values), table


def studies(values: np.ndarray, n_seeds: int) -> np.ndarray:
    """Values float[seeds] as float[studies, seeds]."""
    return values[: len(values) // n_seeds * n_seeds].reshape(-1, n_seeds)


def of_peer(
    table: pd.DataFrame, n_seeds: int, test: Callable, other: str, intervention: str = MARKERS
) -> float:
    """The percent of studies in which a test of all runs together has a p-value below 5 %."""
    columns = tuple(dict.fromkeys(["entropy", other])) if other != "share" else ("entropy",)
    runs = runs_of(of_intervention(table, intervention), columns)
    by_study = [own for _, own in runs.groupby(runs["seed"] // n_seeds)]
    found = [test(own["entropy"], own[other]).pvalue < 0.05 for own in by_study]
    return 100 * float(np.mean(found))


def bounded(statistics: dict, test: Callable, n: int) -> Iterator[Row]:
    """Rows of statistics that are 0 in all worlds."""
    for world_name, world in WORLDS.items():
        for name, estimate in statistics.items():
            # Where accuracy has levels, models have an order, which the measure does not follow.
            there = replace(world, markers={"accuracy": -0.5}) if statistics is ORDERS else world
            values, table = of_all_seeds(there, 1, n * max(SEEDS), estimate)
            for n_seeds in SEEDS:
                drawn = studies(values, n_seeds)[:n]
                some = table[table["seed"] < n_seeds * len(drawn)]
                peer = of_peer(some, n_seeds, test, OTHER_OF.get(name, "share"))
                what = f"{name}, {world_name}, {n_seeds} seeds"
                yield of_false_positives(what, excluded(drawn, 0), len(drawn), peer, LEVEL)


def of_correlations(n: int) -> Iterator[Row]:
    """Rows of correlations whose mean over seeds is 0.5."""
    from scipy.stats import pearsonr

    follows = {"entropy": 0.1, "two_norm": 0.04, "frobenius": 0.04}
    for what, (field, estimate) in CORRELATIONS.items():
        for name in ("normal", "uneven", "heavy tails"):
            there = replace(WORLDS[name], **{field: follows})
            world = calibrated(there, n * max(SEEDS), estimate)
            values, table = of_all_seeds(world, 1, n * max(SEEDS), estimate)
            intervention = estimate.keywords["intervention"]
            for n_seeds in SEEDS:
                drawn = studies(values, n_seeds)[:n]
                some = table[table["seed"] < n_seeds * len(drawn)]
                peer = of_peer(
                    some,
                    n_seeds,
                    lambda x, y: against(pearsonr(x, y), len(x)),
                    "two_norm",
                    intervention,
                )
                found = excluded(np.arctanh(drawn), np.arctanh(claims.STRONG))
                of_row = f"{what} of 0.5, {name}, {n_seeds} seeds"
                yield of_false_positives(of_row, found, len(drawn), peer, LEVEL)
                if field == "markers":
                    yield of_strongest(some, n_seeds, name, min(n, FEWER))


def of_strongest(table: pd.DataFrame, n_seeds: int, name: str, n: int) -> Row:
    """The row of the strongest of two correlations, both 0.5; the peer is Student's of it alone."""
    some = table[table["seed"] < n_seeds * n]
    found = [STRONGEST(own) for _, own in some.groupby(some["seed"] // n_seeds)]
    ours = sum(each.lower > claims.STRONG or each.upper < claims.STRONG for each in found)
    alone = np.arctanh(np.array([each.values for each in found]))
    peer = 100 * excluded(alone, np.arctanh(claims.STRONG)) / len(found)
    return of_false_positives(
        f"strongest of 0.5, {name}, {n_seeds} seeds", ours, len(found), peer, LEVEL
    )


class P(float):
    """A p-value, as tests of scipy give it."""

    pvalue = property(float)


def against(correlation, n: int) -> P:
    """The p-value of a correlation of n runs against 0.5, by Fisher's transformation."""
    from scipy.special import ndtr

    z = (np.arctanh(correlation.statistic) - np.arctanh(claims.STRONG)) * np.sqrt(n - 3)
    return P(2 * ndtr(-abs(z)))


def calibrated(world: World, n_seeds: int, estimate: Callable) -> World:
    """The world with the noise at which the mean correlation of seeds is 0.5, by bisection."""
    low, high = 0.1, 20.0
    for _ in range(12):
        noise = np.sqrt(low * high)
        values = of_all_seeds(replace(world, noise=noise), 2, n_seeds, estimate)[0]
        mean = np.tanh(np.arctanh(values).mean())
        low, high = (noise, high) if mean > claims.STRONG else (low, noise)
    return replace(world, noise=noise)


def of_own_intervals(n: int) -> Iterator[Row]:
    """Rows of statistics with an interval of their own; the peer is Student's of their values."""
    for what, estimate, changes, models, numbers in OF_THEIR_OWN:
        for name, world in WORLDS.items():
            for n_seeds in numbers:
                seeds = n * n_seeds
                table = information(replace(world, **changes), 1, seeds=seeds, models=models)
                found = [estimate(own) for _, own in table.groupby(table["seed"] // n_seeds)]
                ours = sum(each.lower > 0 or each.upper < 0 for each in found)
                peer = 100 * excluded(np.array([each.values for each in found]), 0) / n
                of_row = f"{what}, {name}, {n_seeds} seeds"
                yield of_false_positives(of_row, ours, n, peer, LEVEL)


def of_starts(n: int) -> Iterator[Row]:
    """Rows of the epoch of the start, in which nothing happens, and of the last epoch."""
    for name, world in WORLDS.items():
        table = noisy_epochs(world, 1, n * max(SEEDS))
        values = np.array(claims.at_start(table, "entropy").values)
        against_all = beyond_all_epochs(table)
        for n_seeds in SEEDS:
            ours, peer = (studies(each, n_seeds)[:n] for each in (values, against_all))
            of_peer = 100 * excluded(peer, 0) / len(peer)
            what = f"start, {name}, {n_seeds} seeds"
            yield of_false_positives(what, excluded(ours, 0), len(ours), of_peer, LEVEL)
        equal = noisy_epochs(world, 2, n * max(SEEDS), apart=0.0)
        values = np.array(claims.at_the_end(equal, "entropy").values)
        late = apart_by_epoch(equal).loc[:, LATE:].to_numpy()
        for n_seeds in SEEDS:
            ours = studies(values, n_seeds)[:n]
            pooled = late[: ours.size].reshape(len(ours), -1)
            of_peer = 100 * excluded(pooled, 0) / len(pooled)
            what = f"end, {name}, {n_seeds} seeds"
            yield of_false_positives(what, excluded(ours, 0), len(ours), of_peer, LEVEL)


def apart_by_epoch(table: pd.DataFrame) -> pd.DataFrame:
    """Entropy of repeated minus fresh strings, by seed (rows) and epoch (columns)."""
    means = table.groupby(["variant", "seed", "epoch"])["entropy"].mean()
    return (means[REPEATED] - means[FRESH]).unstack("epoch")


def beyond_all_epochs(table: pd.DataFrame) -> np.ndarray:
    """Repeated minus fresh strings: the change in the epoch of the start minus that in others."""
    steps = apart_by_epoch(table).diff(axis=1).loc[:, 2:]
    start = epochs.starts(table).droplevel("model")
    at = np.array(steps.columns) == start.to_numpy()[:, None]
    values = steps.to_numpy()
    return values[at] - np.where(at, 0, values).sum(axis=1) / (values.shape[1] - 1)


def power(n: int) -> Iterator[Row]:
    """Rows of a change that is there."""
    from scipy.stats import kendalltau, linregress

    there = World(markers={"entropy": -0.1, "accuracy": -0.5})
    for name, estimate, test, other in (
        ("entropy", SLOPES["entropy"], linregress, "share"),
        ("tau", ORDERS["tau"], kendalltau, "accuracy"),
    ):
        values, table = of_all_seeds(there, 1, n * max(SEEDS), estimate)
        for n_seeds in SEEDS:
            drawn = studies(values, n_seeds)[:n]
            some = table[table["seed"] < n_seeds * len(drawn)]
            ours = 100 * excluded(drawn, 0) / len(drawn)
            peer = of_peer(some, n_seeds, test, other)
            yield shown(f"found: {name}, {n_seeds} seeds", ours, peer, "%", ours / max(peer, 0.5))
    for n_seeds in (*SEEDS, MANY):
        studies_of = min(n, FEWER)
        table = noisy_epochs(World(), 3, studies_of * n_seeds, jump=0.1)
        values = studies(np.array(claims.at_start(table, "entropy").values), n_seeds)
        peer = studies(beyond_all_epochs(table), n_seeds)
        ours, peer = (100 * excluded(each, 0) / len(each) for each in (values, peer))
        yield shown(f"found: start, {n_seeds} seeds", ours, peer, "%", ours / max(peer, 0.5))
        table = information(World(), 4, seeds=studies_of * n_seeds)
        found = [STRONGEST(own) for _, own in table.groupby(table["seed"] // n_seeds)]
        ours = 100 * np.mean([each.upper < claims.STRONG for each in found])
        yield shown(f"found: hardly goes with norms, {n_seeds} seeds", ours, np.nan, "%", np.nan)


def rows(tiny: bool) -> Iterator[Row]:
    """All rows."""
    from scipy.stats import kendalltau, linregress

    n = TINY if tiny else STUDIES
    yield from bounded(SLOPES, linregress, n)
    yield from bounded(ORDERS, kendalltau, n)
    yield from of_correlations(n)
    yield from of_own_intervals(min(n, FEWER))
    yield from of_starts(n)
    yield from power(n)


if __name__ == "__main__":
    sys.exit(main(rows))
