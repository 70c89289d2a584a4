"""Estimators of memorisation profiles: time, memory, and how often their bands hold the truth.

Run as a script: `python tests/benchmarks/bench_profiles.py`. The panel for time has the paper's
number of checkpoints and cohorts. The peer for time is plain pandas, one cell after the other, and
only for means and standard errors: it is timed on a few cells, and extrapolated to all. The peer
for coverage is the interval of each single cell, mean ± 1.96 standard errors.
"""

import os

os.environ.update(NUMBA_NUM_THREADS="2", OMP_NUM_THREADS="2", OPENBLAS_NUM_THREADS="2")

import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "workflow/scripts"), str(ROOT / "tests")]

from rows import Row, at_most, main, shown  # noqa: E402

from helpers.panels import simulated_panel  # noqa: E402
from palimpsest import profiles  # noqa: E402

# As in the paper: 95 macro-batches of 100 strings, a checkpoint after each, and one before all
COHORTS, TREATED, UNTREATED, TIMES, DRAWS = 95, 100, 6800, 96, 1000
TARGET_SECONDS, TARGET_GB = 2.0, 1.0
PANELS, TARGET_MISSES = 200, 7.0  # percent of the panels; at most 5 are expected
CELLS_OF_PEER = 20


def paper_panel(cohorts: int, treated: int, untreated: int, times: int) -> pd.DataFrame:
    """A panel of the given size; units are numbers."""
    chance = np.random.default_rng(0)
    names = tuple(range(1, cohorts + 1))
    frame = simulated_panel(chance, names, treated, untreated, times, lambda g, t: 1 / (1 + t - g))
    return frame.assign(unit=pd.factorize(frame["unit"])[0])


def speed(cohorts: int, treated: int, untreated: int, times: int, draws: int) -> Iterator[Row]:
    """Seconds and memory from a table in memory to all bands."""
    frame = paper_panel(cohorts, treated, untreated, times)
    before = memory_gb()
    work = f"{frame['unit'].nunique():,} units x {times} times, {draws:,} draws"
    peer = seconds_of_cells(frame, cohorts, times)
    for name in ("difference", "difference_in_differences", "by_time_since_treatment"):
        begin = time.perf_counter()
        getattr(profiles, name)(frame, n=draws)
        ours = time.perf_counter() - begin
        yield at_most(f"{name}, {work}"[:58], ours, peer, "s", TARGET_SECONDS)
    table = frame.memory_usage(index=False).sum() / 1e9
    yield at_most("memory beside the table", memory_gb() - before, table, "GB", TARGET_GB)


def seconds_of_cells(frame: pd.DataFrame, cohorts: int, times: int) -> float:
    """Seconds for the mean change and its error in every cell, by plain pandas."""
    begin = time.perf_counter()
    for cohort in range(1, min(cohorts, CELLS_OF_PEER) + 1):
        pair = frame[
            frame["time"].isin([cohort - 1, cohort]) & frame["cohort"].isin([cohort, np.inf])
        ]
        change = pair.pivot(index=["cohort", "unit"], columns="time", values="outcome")
        change.diff(axis=1).iloc[:, 1].groupby("cohort").agg(["mean", "sem"])
    return (time.perf_counter() - begin) / min(cohorts, CELLS_OF_PEER) * cohorts * times


def memory_gb() -> float:
    """The largest memory of this process so far, in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def coverage(panels: int, draws: int) -> Iterator[Row]:
    """Percent of the panels in which a cell is outside its band, for small and large cohorts."""
    for name in ("difference", "difference_in_differences", "by_time_since_treatment"):
        for treated in (12, 100):
            misses = np.zeros(2)
            for seed in range(panels):
                chance = np.random.default_rng(seed)
                frame = simulated_panel(chance, (2, 4, 5, 7), treated, 60, 9, lambda g, t: 1.0)
                table = getattr(profiles, name)(frame, n=draws, seed=seed)
                since = table["since"] if "since" in table else table["time"] - table["cohort"]
                distance = (table["estimate"] - (since >= 0)).abs()
                reach = table["upper"] - table["estimate"]
                misses += [(distance > reach).any(), (distance > 1.96 * table["std_error"]).any()]
            ours, peer = 100 * misses / panels
            work = f"{name}: a cell outside, {treated} a cohort"
            yield at_most(work[:58], ours, peer, "%", TARGET_MISSES, peer / max(ours, 0.5))
            yield shown("  its distance from 5 %", abs(ours - 5), abs(peer - 5), "points", 1.0)


def rows(tiny: bool) -> Iterator[Row]:
    """All rows of this benchmark."""
    yield from speed(*((5, 4, 6, 7, 20) if tiny else (COHORTS, TREATED, UNTREATED, TIMES, DRAWS)))
    yield from coverage(*((2, 50) if tiny else (PANELS, DRAWS)))


if __name__ == "__main__":
    sys.exit(main(rows))
