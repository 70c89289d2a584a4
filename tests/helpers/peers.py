"""Group-time effects by two published packages, diff-diff and csdid, as tables of cells.

Both are asked for the method of our estimator: outcome regression without covariates (which is the
difference of mean changes), units never treated as the comparison, and one base period per cohort.

The functions import the packages themselves, because an environment may lack them.
"""

from importlib import import_module
from importlib.util import find_spec

import numpy as np
import pandas as pd

PACKAGES = ("diff_diff", "csdid", "drdid", "formulaic", "interface_meta", "patsy", "statsmodels")
REMEDY = "make .venv/peers.installed"


def lacking() -> str | None:
    """Why the peers cannot be used, with the remedy; None if they can."""
    missing = [name for name in PACKAGES if find_spec(name) is None]
    if not missing:
        return None
    return f"{', '.join(missing)}: not installed; install requirements-peers.txt with: {REMEDY}"


def load() -> None:
    """Import the peers, which takes seconds, so that a measurement does not."""
    for name in ("diff_diff", "csdid.att_gt"):
        import_module(name)


def numbered(frame: pd.DataFrame) -> pd.DataFrame:
    """A panel as the peers want it: units are numbers, and the cohort 0 is never treated."""
    units = pd.factorize(frame["unit"])[0]
    return frame.assign(unit=units, cohort=frame["cohort"].replace(np.inf, 0))


def fitted_by_diff_diff(frame: pd.DataFrame, n_draws: int = 0, seed: int = 0, base="universal"):
    """The results of diff-diff; without draws, its standard errors are analytic."""
    from diff_diff import CallawaySantAnna

    estimator = CallawaySantAnna(
        control_group="never_treated",
        estimation_method="reg",
        base_period=base,
        n_bootstrap=n_draws,
        seed=seed,
    )
    return estimator.fit(numbered(frame), "outcome", "unit", "time", "cohort")


def cells_of_diff_diff(frame: pd.DataFrame, base: str = "universal") -> pd.DataFrame:
    """Columns cohort, time, estimate and std_error of every cell."""
    effects = fitted_by_diff_diff(frame, base=base).group_time_effects
    rows = [(*cell, effect["effect"], effect["se"]) for cell, effect in effects.items()]
    return pd.DataFrame(rows, columns=["cohort", "time", "estimate", "std_error"])


def fitted_by_csdid(frame: pd.DataFrame, n_draws: int = 0, seed: int = 0):
    """The results of csdid; without draws, its standard errors are analytic."""
    from csdid.att_gt import ATTgt

    draws = {"cband": True, "biters": n_draws} if n_draws else {}
    np.random.seed(seed)  # noqa: NPY002 - csdid draws from NumPy's global generator
    estimator = ATTgt(
        yname="outcome",
        tname="time",
        idname="unit",
        gname="cohort",
        data=numbered(frame),
        control_group="nevertreated",
        **draws,
    )
    return estimator.fit(est_method="reg", base_period="universal", bstrap=n_draws > 0)


def cells_of_csdid(frame: pd.DataFrame, n_draws: int = 0, seed: int = 0) -> pd.DataFrame:
    """Columns cohort, time, estimate, std_error and critical of every cell.

    `critical` is half the width of a cell's band in standard errors. Without draws, the bands are
    not simultaneous.
    """
    found = fitted_by_csdid(frame, n_draws, seed).results
    names = {"group": "cohort", "year": "time", "att": "estimate", "se": "std_error"}
    table = pd.DataFrame({ours: found[theirs] for theirs, ours in names.items()})
    return table.assign(critical=found["c"])
