"""How the report was made: the runs and the software, for a reader."""

import platform
from collections.abc import Iterable

import matplotlib
import numpy as np
import pandas as pd

import palimpsest
from palimpsest.number_format import duration

LABELS = {
    "models": "Models",
    "languages": "Languages",
    "sizes": "Training strings",
    "seeds": "Seeds",
    "epochs": "Epochs",
    "n_runs": "Runs, one training each",
    "wall_time_seconds": "Time of all runs together",
    "hardware": "Hardware",
    "packages": "Software of the runs",
    "revisions": "Revision of the code of the runs",
    "report": "Software of this report",
}


def rows(totals: dict) -> list[tuple[str, str]]:
    """Label and value of every fact about the runs; keys with a label come first."""
    own = {
        "palimpsest": palimpsest.__version__,
        "python": platform.python_version(),
        "matplotlib": matplotlib.__version__,
        "pandas": pd.__version__,
    }
    given = {**totals, "report": own}
    known = [key for key in LABELS if key in given]
    other = [key for key in given if key not in LABELS]
    return [
        (LABELS.get(key, key.replace("_", " ").capitalize()), told(key, given[key]))
        for key in [*known, *other]
    ]


def told(key: str, value) -> str:
    if key == "wall_time_seconds":
        return duration(value)
    if isinstance(value, dict):
        return ", ".join(f"{name} {told('', part)}" for name, part in value.items())
    if isinstance(value, Iterable) and not isinstance(value, str):
        return ", ".join(told("", part) for part in value)
    if isinstance(value, int | float | np.number) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
