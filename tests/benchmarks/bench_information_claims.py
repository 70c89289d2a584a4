"""How often statistics of the claims on information measures find what is not there, or is.

Run as a script: `python tests/benchmarks/bench_information_claims.py`. One core, two minutes.

Values are the percent of studies whose 95 % interval excludes the bound of the claim, although the
statistic is at this bound. In a row's name stands the exact binomial 95 % interval of our value;
the target is that its lower end is at most 5 %. Worlds are those of
tests/helpers/information_worlds.py. In all of them seeds and layers have levels. `uneven`: the
noise is three times as large at share 1 as at share 0. `heavy tails`: Student's t with 2 degrees of
freedom. `own changes`: every seed has a change of its own, in either direction. The peer takes the
runs of all seeds for independent: a regression, or a test of Kendall's correlation. The last rows
have no target: the percent of studies that find a change of entropy by 0.1 nats (noise of a run:
0.04), and the same of the order of models.
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
    World,
    information,
)
from palimpsest.information.claims import claim_statistics as claims  # noqa: E402
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
    "tau of norms": partial(claims.ordered_by_norms, intervention=MARKERS),
    "tau minus norms": partial(claims.ordered_better, intervention=MARKERS, column="entropy"),
}
EVERY_DEPTH = partial(claims.at_every_depth, intervention=SHUFFLES, column="entropy")
# Statistics with an interval of their own: name, statistic, changes, models and numbers of seeds.
OF_THEIR_OWN = (("every depth", EVERY_DEPTH, {}, DEPTHS, SEEDS[1:]),)
# What the peer of a statistic of orders compares entropy with
OTHER_OF = {"tau": "accuracy", "tau of norms": "accuracy", "tau minus norms": "accuracy"}


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


def rows(tiny: bool) -> Iterator[Row]:
    """All rows."""
    from scipy.stats import kendalltau, linregress

    n = TINY if tiny else STUDIES
    yield from bounded(SLOPES, linregress, n)
    yield from bounded(ORDERS, kendalltau, n)
    yield from of_own_intervals(min(n, FEWER))
    yield from power(n)


if __name__ == "__main__":
    sys.exit(main(rows))
