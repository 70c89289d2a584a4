"""Estimators of memorisation profiles: time, memory, and how often their bands hold the truth.

Run as a script: `python tests/benchmarks/bench_profiles.py`. The panel for time has the paper's
number of checkpoints and cohorts. Each estimate runs in a process of its own, which begins with the
panel in memory; memory is what the process needs beside it.

Peers for time: plain pandas, one cell after the other, only for means and standard errors, timed on
a few cells and extrapolated to all; diff-diff, on the same panel, with bands for means over cohorts
only; csdid with bands over all cells, on a smaller panel, because it takes minutes. Without the
packages of requirements-peers.txt, the rows of the last two are left out, and a line says so.

Coverage is the percent of simulated panels whose cells are all inside their bands. In a row's name
stand the outcome, the units of a cohort, and the exact binomial 95 % interval of our value. The
peer is the interval of each single cell, mean ± 1.96 standard errors; in further rows it is csdid,
on the first of the panels. Outcomes are normal and independent, sums of steps with exponential
distribution (skewed), or sums of normal steps (correlated). With 12 units, nothing is promised:
there, the mean of skewed outcomes is itself skewed.

The last rows are of the order of cohorts: percent of panels without an order whose 95 % interval of
"later minus earlier half" holds 0, just after the treatment and at the last time. Cohorts of 100
units differ by chance, with the standard deviation in the row's name, in percent of the effect. The
peer is the interval over units alone.
"""

import os

os.environ.update(NUMBA_NUM_THREADS="2", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")
os.environ.update(RAYON_NUM_THREADS="2")

import multiprocessing
import resource
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import binomtest

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests")]

from rows import Row, at_most, main, shown  # noqa: E402

from helpers import peers  # noqa: E402
from helpers.panels import simulated_panel  # noqa: E402
from palimpsest import profiles  # noqa: E402
from palimpsest.profiles import effects  # noqa: E402
from palimpsest.profiles.panel import NEVER, Panel  # noqa: E402

NAMES = ("difference", "difference_in_differences", "by_time_since_treatment")
# As in the paper: 95 macro-batches of 100 strings, a checkpoint after each, and one before all
COHORTS, TREATED, UNTREATED, TIMES, DRAWS = 95, 100, 6800, 96, 1000
COHORTS_OF_CSDID = 24
TARGET_SECONDS, TARGET_GB = 2.0, 1.0
CELLS_OF_PANDAS = 20

PANELS, PANELS_OF_CSDID = 1000, 200
LOWEST, HIGHEST = 93.0, 97.0  # percent of the panels; 95 are expected
SIZES = {12: False, 32: True, 100: True}  # units of a cohort, and whether the target holds for it
SPREADS = (0, 0.05, 0.1, 0.2)  # of cohorts, as shares of the effect
OUTCOMES = {
    "normal": lambda chance, shape: chance.normal(size=shape),
    "skewed": lambda chance, shape: np.cumsum(chance.exponential(size=shape), axis=1),
    "correlated": lambda chance, shape: np.cumsum(chance.normal(size=shape), axis=1),
}


def paper_panel(cohorts: int, treated: int, untreated: int, times: int) -> pd.DataFrame:
    """A panel of the given size; units are numbers."""
    chance = np.random.default_rng(0)
    names = tuple(range(1, cohorts + 1))
    frame = simulated_panel(chance, names, treated, untreated, times, lambda g, t: 1 / (1 + t - g))
    return frame.assign(unit=pd.factorize(frame["unit"])[0])


def measured(call: Callable[[], object]) -> tuple[float, float]:
    """Seconds of a call in a process of its own, and GB that it needs beside what is in memory."""
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_measure, args=(call, sender))
    child.start()
    sender.close()
    try:
        return receiver.recv()
    finally:
        child.join()


def _measure(call: Callable[[], object], sender) -> None:
    warnings.simplefilter("ignore")
    before = memory_gb()
    begin = time.perf_counter()
    call()
    sender.send((time.perf_counter() - begin, memory_gb() - before))


def memory_gb() -> float:
    """The largest memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def speed(cohorts: int, treated: int, untreated: int, times: int, draws: int) -> Iterator[Row]:
    """Seconds and memory from a table in memory to all bands."""
    frame = paper_panel(cohorts, treated, untreated, times)
    table = frame.memory_usage(index=False).sum() / 1e9
    pandas = seconds_of_cells(frame, cohorts, times)
    for name in NAMES:
        estimator = getattr(profiles, name)
        seconds, gb = measured(lambda: estimator(frame, n=draws))  # noqa: B023 - called at once
        work = f"{name}, {work_of(frame)}"
        yield at_most(work[:58], seconds, pandas, "s", TARGET_SECONDS)
        yield at_most("  memory beside the table", gb, table, "GB", TARGET_GB)
    if not usable_peers():
        return
    peers.load()
    yield from beside(
        "diff-diff: means over cohorts",
        frame,
        lambda: profiles.by_time_since_treatment(frame, n=draws),
        lambda: peers.fitted_by_diff_diff(frame, draws).aggregate("event_study"),
    )
    fewer = min(cohorts, COHORTS_OF_CSDID)
    smaller = paper_panel(fewer, treated, untreated, fewer + 1)
    yield from beside(
        "csdid: cells",
        smaller,
        lambda: profiles.difference_in_differences(smaller, n=draws),
        lambda: peers.fitted_by_csdid(smaller, draws),
    )


def beside(name: str, frame: pd.DataFrame, ours: Callable, theirs: Callable) -> Iterator[Row]:
    """Seconds and memory of our bands and of those of a peer."""
    (seconds, gb), (seconds_of_peer, gb_of_peer) = measured(ours), measured(theirs)
    work = f"beside {name}, {work_of(frame)}"
    yield shown(work[:58], seconds, seconds_of_peer, "s", seconds_of_peer / seconds)
    yield shown("  memory beside the table", gb, gb_of_peer, "GB", gb_of_peer / gb)


def work_of(frame: pd.DataFrame) -> str:
    """The size of a panel."""
    return f"{frame['unit'].nunique():,} x {frame['time'].nunique()}"


def seconds_of_cells(frame: pd.DataFrame, cohorts: int, times: int) -> float:
    """Seconds for the mean change and its error in every cell, by plain pandas."""
    begin = time.perf_counter()
    for cohort in range(1, min(cohorts, CELLS_OF_PANDAS) + 1):
        pair = frame[
            frame["time"].isin([cohort - 1, cohort]) & frame["cohort"].isin([cohort, np.inf])
        ]
        change = pair.pivot(index=["cohort", "unit"], columns="time", values="outcome")
        change.diff(axis=1).iloc[:, 1].groupby("cohort").agg(["mean", "sem"])
    return (time.perf_counter() - begin) / min(cohorts, CELLS_OF_PANDAS) * cohorts * times


def usable_peers() -> bool:
    """Whether the peers are installed."""
    return peers.lacking() is None


def known_panel(outcome: str, treated: int, seed: int) -> Panel:
    """Four cohorts and 60 units never treated, at nine times; every effect is 1."""
    chance = np.random.default_rng(seed)
    cohorts = np.repeat([2, 4, 5, 7, NEVER], [treated] * 4 + [60])
    times = np.arange(9.0)
    noise = OUTCOMES[outcome](chance, (len(cohorts), len(times)))
    level = 2 * chance.normal(size=(len(cohorts), 1))
    return Panel(times, cohorts, level + noise + (times >= cohorts[:, None]))


def frame_of(panel: Panel) -> pd.DataFrame:
    """A panel as a table."""
    units, times = panel.outcome.shape
    return pd.DataFrame(
        {
            "unit": np.repeat(np.arange(units), times),
            "time": np.tile(panel.times, units),
            "cohort": np.repeat(panel.cohorts, times),
            "outcome": panel.outcome.ravel(),
        }
    )


def holds(table: pd.DataFrame, critical: pd.Series | float) -> bool:
    """Whether every cell is at most `critical` standard errors from the truth."""
    since = table["since"] if "since" in table else table["time"] - table["cohort"]
    distance = (table["estimate"] - (since >= 0)).abs()
    return not (distance > critical * table["std_error"]).any()


def coverage(panels: int, panels_of_csdid: int, draws: int) -> Iterator[Row]:
    """Percent of the panels whose cells are all inside their bands."""
    for name in NAMES:
        for outcome in OUTCOMES:
            for treated, promised in SIZES.items():
                yield coverage_of(name, outcome, treated, panels, draws, promised)
                if name == "difference_in_differences" and usable_peers():
                    yield coverage_beside_csdid(outcome, treated, panels_of_csdid, draws)


def coverage_of(
    name: str, outcome: str, treated: int, panels: int, draws: int, promised: bool
) -> Row:
    """Our bands, and intervals of single cells."""
    held = np.zeros(2, int)
    for seed in range(panels):
        table = getattr(profiles, name)(known_panel(outcome, treated, seed), n=draws, seed=seed)
        held += [holds(table, critical_of(table)), holds(table, 1.96)]
    interval = binomtest(held[0], panels).proportion_ci()
    ours, peer = 100 * held / panels
    what = f"{name}, {outcome}, {treated}: {100 * interval.low:.1f}-{100 * interval.high:.1f}"
    ratio = (100 - peer) / max(100 - ours, 0.5)
    target, reached = f"{LOWEST:g} to {HIGHEST:g} %", LOWEST <= ours <= HIGHEST
    if not promised:
        return shown(what, ours, peer, "%", ratio)
    return Row(what, ours, peer, "%", ratio, target, bool(reached))


def coverage_beside_csdid(outcome: str, treated: int, panels: int, draws: int) -> Row:
    """Our bands, and those of csdid."""
    held = np.zeros(2)
    for seed in range(panels):
        panel = known_panel(outcome, treated, seed)
        ours = profiles.difference_in_differences(panel, n=draws, seed=seed)
        theirs = peers.cells_of_csdid(frame_of(panel), draws, seed)
        held += [holds(ours, critical_of(ours)), holds(theirs, theirs["critical"])]
    ours, peer = 100 * held / panels
    return shown(
        f"  beside csdid, {panels} panels", ours, peer, "%", (100 - peer) / max(100 - ours, 0.5)
    )


def coverage_of_order(panels: int) -> Iterator[Row]:
    """Percent of intervals of an order that hold 0 where cohorts differ by chance."""
    for part in effects.ORDERS:
        for spread in SPREADS:
            held = np.zeros(2, int)
            for seed in range(panels):
                found = effects.part_of(panel_without_order(spread, seed), part)
                for place, one in enumerate((found, replace(found, halves=None))):
                    interval = one.interval()
                    held[place] += interval.lower <= 0 <= interval.upper
            bounds = binomtest(held[0], panels).proportion_ci()
            ours, peer = 100 * held / panels
            what = f"{part}, {spread:.0%}: {100 * bounds.low:.1f}-{100 * bounds.high:.1f}"
            ratio = (100 - peer) / max(100 - ours, 0.5)
            target, reached = f"{LOWEST:g} to {HIGHEST:g} %", LOWEST <= ours <= HIGHEST
            yield Row(what, ours, peer, "%", ratio, target, bool(reached))


def panel_without_order(spread: float, seed: int) -> Panel:
    """Eight cohorts of 100 units, whose effects have the mean 1 and differ by chance alone."""
    chance = np.random.default_rng([seed, 8])
    cohorts, times = np.repeat([*range(1, 9), NEVER], [100] * 8 + [500]), np.arange(10.0)
    steps = 0.1 * chance.normal(size=(len(cohorts), len(times)))
    levels = np.repeat([*(1 + spread * chance.normal(size=8)), 0], [100] * 8 + [500])
    effect = levels[:, None] * (times >= cohorts[:, None])
    return Panel(times, cohorts, np.cumsum(steps, axis=1) + effect)


def critical_of(table: pd.DataFrame) -> pd.Series:
    """Half the width of each band in standard errors."""
    return (table["upper"] - table["estimate"]) / table["std_error"]


def rows(tiny: bool) -> Iterator[Row]:
    """All rows of this benchmark."""
    if reason := peers.lacking():
        print(f"bench_profiles: no rows beside published packages: {reason}", file=sys.stderr)
    yield from speed(*((5, 4, 6, 7, 20) if tiny else (COHORTS, TREATED, UNTREATED, TIMES, DRAWS)))
    yield from coverage(*((2, 2, 50) if tiny else (PANELS, PANELS_OF_CSDID, DRAWS)))
    yield from coverage_of_order(2 if tiny else PANELS)


if __name__ == "__main__":
    sys.exit(main(rows))
