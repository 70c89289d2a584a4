"""Panels: the outcomes of units over time, and the time at which each unit was treated.

A unit is a string, a time is a checkpoint, and a unit is treated when the model is trained on it.
Units that are treated at the same time are a cohort. A unit of the validation set is never treated:
its cohort is infinite.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from palimpsest.errors import UserError, nearest

COLUMNS = ("unit", "time", "cohort", "outcome")
NEVER = np.inf
READERS = {".parquet": pd.read_parquet, ".csv": pd.read_csv}


@dataclass(frozen=True)
class Panel:
    """A balanced panel.

    Parameters
    ----------
    times : float64[times], ascending
    cohorts : float64[units]
        The time at which a unit is treated; `NEVER` for a unit that is never treated.
    outcome : float64[units, times]
    source : str
        The name of the panel in messages.
    rows : int64[units], optional
        The first row of each unit in its table, counted from 1, for messages.
    """

    times: np.ndarray
    cohorts: np.ndarray
    outcome: np.ndarray
    source: str = "panel"
    rows: np.ndarray | None = None

    @property
    def treated(self) -> np.ndarray:
        """float64[cohorts], ascending: the times at which units are treated."""
        return np.unique(self.cohorts[np.isfinite(self.cohorts)])

    def place_of(self, cohort: float) -> str:
        """Where a cohort is, for messages: the panel, and the first row of the cohort."""
        if self.rows is None:
            return self.source
        return f"{self.source}: row {self.rows[self.cohorts == cohort].min()}"

    def first_after(self, cohort: float) -> int:
        """The place of the first time at which a cohort has been treated; len(times) if none."""
        return int(np.searchsorted(self.times, cohort))


def read_panel(path: str | Path) -> Panel:
    """Read a panel from a Parquet or CSV file with the columns unit, time, cohort and outcome.

    Raises `UserError` if there is no such file, if it cannot be read, or as `to_panel` does.
    """
    path = Path(path)
    if not path.is_file():
        raise UserError(f"{path}: no such file; a panel is a .parquet or .csv file")
    if path.suffix not in READERS:
        raise UserError(
            f"{path}: a panel cannot be read from {path.suffix or 'such a file'}; "
            f"save it as {' or '.join(READERS)}"
        )
    try:
        frame = READERS[path.suffix](path)
    except (OSError, ValueError) as error:
        raise UserError(f"{path}: cannot be read as a table: {error}; save it again") from None
    return to_panel(frame, str(path))


def to_panel(frame: pd.DataFrame, source: str = "panel") -> Panel:
    """The panel in a table with one row for each unit and time, in any order.

    Parameters
    ----------
    frame : columns unit (any value), time (number), cohort (number; empty or infinite: never
        treated) and outcome (number)
    source : name of the table in messages

    Raises
    ------
    UserError
        If a column is missing, a value is not a number, a unit has no outcome or two outcomes at a
        time, a unit has two cohorts, no unit is treated or none is never treated, or a cohort has
        only one unit. The message names the row, counted from 1 without the header.
    """
    for name in COLUMNS:
        if name not in frame:
            raise UserError(
                f"{source}: has no column {name!r}{nearest(name, map(str, frame.columns))}; "
                f"a panel has the columns {', '.join(COLUMNS)}"
            )
    if frame.empty:
        raise UserError(f"{source}: has no rows; a panel has one row for each unit and time")
    time, outcome = (_finite(frame, name, source) for name in ("time", "outcome"))
    cohort = _cohorts(frame, source)
    if frame["unit"].isna().any():
        raise UserError(f"{source}: row {_row(frame['unit'].isna())}: has no unit; give it a name")
    of_unit, units = pd.factorize(frame["unit"])
    of_time, times = pd.factorize(time, sort=True)
    first = np.full(len(units), -1)
    first[of_unit[::-1]] = np.arange(len(frame))[::-1]
    _check_cells(source, units, of_unit, times, of_time, first)
    cohorts = cohort[first]
    if (changes := cohort != cohorts[of_unit]).any():
        row = _row(changes)
        unit = frame["unit"].iloc[row - 1]
        raise UserError(
            f"{source}: row {row}: unit {unit!r} has cohort {_shown(cohort[row - 1])} here and "
            f"{_shown(cohorts[of_unit[row - 1]])} in row {first[of_unit[row - 1]] + 1}; a unit has "
            "one cohort, the time at which it was first trained on"
        )
    values = np.empty((len(units), len(times)))
    values[of_unit, of_time] = outcome
    found = Panel(times, cohorts, values, source, first + 1)
    _check_cohorts(found)
    return found


def _finite(frame: pd.DataFrame, name: str, source: str) -> np.ndarray:
    """A column of finite numbers, float64[rows]."""
    numbers = pd.to_numeric(frame[name], errors="coerce").to_numpy(dtype=float)
    if (wrong := ~np.isfinite(numbers)).any():
        row = _row(wrong)
        raise UserError(
            f"{source}: row {row}: {name} {frame[name].iloc[row - 1]!r} is not a finite number; "
            "correct it, or leave the unit out"
        )
    return numbers


def _cohorts(frame: pd.DataFrame, source: str) -> np.ndarray:
    """The cohort of each row, float64[rows]; empty cells are `NEVER`."""
    numbers = pd.to_numeric(frame["cohort"], errors="coerce").to_numpy(dtype=float)
    empty = frame["cohort"].isna().to_numpy()
    if (wrong := (np.isnan(numbers) & ~empty) | (numbers == -np.inf)).any():
        row = _row(wrong)
        raise UserError(
            f"{source}: row {row}: cohort {frame['cohort'].iloc[row - 1]!r} is not a time; give "
            "the time at which the unit is first trained on, or nothing if it never is"
        )
    return np.where(empty, NEVER, numbers)


def _check_cells(
    source: str,
    units: np.ndarray,
    of_unit: np.ndarray,
    times: np.ndarray,
    of_time: np.ndarray,
    first: np.ndarray,
) -> None:
    """Check that each unit has exactly one row at each time."""
    cells = of_unit * len(times) + of_time
    counts = np.bincount(cells, minlength=len(units) * len(times))
    if counts.max() > 1:
        row = _row(pd.Series(cells).duplicated().to_numpy())
        unit, time = units[of_unit[row - 1]], times[of_time[row - 1]]
        raise UserError(
            f"{source}: row {row}: unit {unit!r} is at time {_shown(time)} a second time; keep one "
            "of its rows"
        )
    if counts.min() == 0:
        unit, time = divmod(int(counts.argmin()), len(times))
        raise UserError(
            f"{source}: row {first[unit] + 1}: unit {units[unit]!r} has no outcome at time "
            f"{_shown(times[time])}; every unit needs one at each of the {len(times)} times: add "
            "the row, or leave the unit or the time out"
        )


def _check_cohorts(panel: Panel) -> None:
    """Check that there are units of both kinds, and at least two of each cohort."""
    if not len(panel.treated):
        raise UserError(f"{panel.source}: no unit is ever treated; give the treated ones a cohort")
    cohorts, counts = np.unique(panel.cohorts, return_counts=True)
    if cohorts[-1] != NEVER:
        raise UserError(
            f"{panel.source}: every unit is treated, so there is nothing to compare with; add "
            "units that the model is never trained on, with an empty cohort"
        )
    if (counts == 1).any():
        cohort = cohorts[counts == 1][0]
        what = "only one unit is never treated" if cohort == NEVER else None
        raise UserError(
            f"{panel.place_of(cohort)}: {what or f'cohort {_shown(cohort)} has only one unit'}, so "
            "its spread is unknown; add units, or leave it out"
        )


def _row(wrong: np.ndarray | pd.Series) -> int:
    """The first row of which something is true, counted from 1."""
    return int(np.argmax(np.asarray(wrong))) + 1


def _shown(time: float) -> str:
    return "never" if time == NEVER else f"{time:g}"
