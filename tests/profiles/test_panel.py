"""Panels that users bring: what is read, and what is refused in one line."""

import numpy as np
import pandas as pd
import pytest

from palimpsest import profiles
from palimpsest.errors import UserError
from palimpsest.profiles.panel import to_panel

ROWS = [
    ("a", 0, 1.0, 0.5),
    ("a", 1, 1.0, 0.7),
    ("b", 0, 1.0, 0.1),
    ("b", 1, 1.0, 0.2),
    ("c", 0, np.nan, 0.3),
    ("c", 1, np.nan, 0.4),
    ("d", 0, np.inf, 0.5),
    ("d", 1, np.inf, 0.6),
]


@pytest.fixture
def frame():
    return pd.DataFrame(ROWS, columns=["unit", "time", "cohort", "outcome"])


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_file_is_read(frame, tmp_path, suffix):
    """Empty cells of `cohort` are units that are never treated."""
    path = tmp_path / f"mine{suffix}"
    frame.to_csv(path, index=False) if suffix == ".csv" else frame.to_parquet(path)
    panel = profiles.read_panel(path)
    assert panel.times.tolist() == [0, 1]
    assert panel.cohorts.tolist() == [1, 1, np.inf, np.inf]
    np.testing.assert_array_equal(panel.outcome, [[0.5, 0.7], [0.1, 0.2], [0.3, 0.4], [0.5, 0.6]])


def changed(column, row, value):
    """An edit of one cell; rows are counted from 1."""

    def edit(frame):
        frame = frame.astype({column: object})
        frame.loc[row - 1, column] = value
        return frame

    return edit


BAD = {
    "a missing column": (
        lambda frame: frame.rename(columns={"cohort": "cohorts"}),
        "has no column 'cohort' (did you mean 'cohorts'?); a panel has the columns unit, time, "
        "cohort, outcome",
    ),
    "no rows": (lambda frame: frame.iloc[:0], "has no rows"),
    "a word as outcome": (
        changed("outcome", 3, "high"),
        "row 3: outcome 'high' is not a finite number; correct it, or leave the unit out",
    ),
    "an empty outcome": (changed("outcome", 3, None), "row 3: outcome None is not a finite number"),
    "an infinite outcome": (changed("outcome", 2, np.inf), "row 2: outcome inf is not a finite"),
    "a word as time": (changed("time", 4, "late"), "row 4: time 'late' is not a finite number"),
    "a word as cohort": (
        changed("cohort", 1, "first"),
        "row 1: cohort 'first' is not a time; give the time at which the unit is first trained on, "
        "or nothing if it never is",
    ),
    "no name": (changed("unit", 5, None), "row 5: has no unit; give it a name"),
    "a unit twice at a time": (
        changed("time", 2, 0),
        "row 2: unit 'a' is at time 0 a second time; keep one of its rows",
    ),
    "a unit that is missing at a time": (
        lambda frame: frame.drop(3),
        "row 3: unit 'b' has no outcome at time 1; every unit needs one at each of the 2 times: "
        "add the row, or leave the unit or the time out",
    ),
    "two cohorts of a unit": (
        changed("cohort", 4, np.nan),
        "row 4: unit 'b' has cohort never here and 1 in row 3; a unit has one cohort",
    ),
    "no untreated unit": (
        lambda frame: frame.iloc[:4],
        "every unit is treated, so there is nothing to compare with; add units that the model is "
        "never trained on, with an empty cohort",
    ),
    "no treated unit": (lambda frame: frame.iloc[4:], "no unit is ever treated"),
    "one unit in a cohort": (lambda frame: frame.drop([0, 1]), "row 1: cohort 1 has only one unit"),
    "one untreated unit": (
        lambda frame: frame.drop([6, 7]),
        "row 5: only one unit is never treated",
    ),
}


@pytest.mark.parametrize("mistake", BAD)
def test_a_bad_panel_is_refused_in_one_line(frame, mistake):
    edit, message = BAD[mistake]
    with pytest.raises(UserError) as error:
        to_panel(edit(frame), "mine.csv")
    assert str(error.value).startswith(f"mine.csv: {message}")


def test_a_file_that_is_no_panel(tmp_path):
    with pytest.raises(UserError, match=r"no such file; a panel is a .parquet or .csv file"):
        profiles.read_panel(tmp_path / "nowhere.csv")
    (tmp_path / "mine.xlsx").touch()
    with pytest.raises(UserError, match=r"cannot be read from .xlsx; save it as .parquet or .csv"):
        profiles.read_panel(tmp_path / "mine.xlsx")
    (tmp_path / "mine.parquet").write_text("not a table")
    with pytest.raises(UserError, match=r"mine.parquet: cannot be read as a table: .*; save it"):
        profiles.read_panel(tmp_path / "mine.parquet")
