"""Panels with a known truth, as tables."""

import numpy as np
import pandas as pd


def simulated_panel(
    chance: np.random.Generator,
    cohorts: tuple[float, ...] = (2, 4, 5),
    n_treated: int = 30,
    n_untreated: int = 60,
    n_times: int = 7,
    effect=lambda cohort, time: 0.0,
) -> pd.DataFrame:
    """Random walks around a common trend; `effect(cohort, time)` is added from the cohort on.

    Times are 0, 1, ...; units that are never treated have an infinite cohort.
    """
    times = np.arange(n_times)
    trend = np.cumsum(chance.normal(size=n_times))
    frames = []
    for place, cohort in enumerate((*cohorts, np.inf)):
        n = n_untreated if np.isinf(cohort) else n_treated
        level = chance.normal(size=(n, 1)) * 2
        paths = trend + level + np.cumsum(chance.normal(size=(n, n_times)), axis=1)
        added = [effect(cohort, time) if time >= cohort else 0.0 for time in times]
        frames.append(
            pd.DataFrame(
                {
                    "unit": np.repeat([f"{place}-{unit}" for unit in range(n)], n_times),
                    "time": np.tile(times, n),
                    "cohort": float(cohort),
                    "outcome": (paths + added).ravel(),
                }
            )
        )
    return pd.concat(frames, ignore_index=True)
