"""Panels: the outcomes of units over time, and the time at which each unit was treated.

A unit is a string, a time is a checkpoint, and a unit is treated when the model is trained on it.
Units that are treated at the same time are a cohort. A unit of the validation set is never treated:
its cohort is infinite.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from palimpsest.arguments import FRAME, FilePath, takes
from palimpsest.errors import Notice, UserError
from palimpsest.plain_text import same_when_composed
from palimpsest.profiles.panel_columns import PANEL, outcome_column
from palimpsest.short_repr import ShortRepr
from palimpsest.tables import user_files
from palimpsest.tables.user_tables import UserTable, place_of_row, read_user_table, user_table
from palimpsest.tables.user_values import NUMBER, written_moment

NEVER = np.inf
MOST_NAMED = 5  # cohorts in a message
FEWEST_UNITS = 4  # of a kind; with fewer, beside more of the other kind, bands are too narrow


@dataclass(frozen=True, repr=False)
class Panel(ShortRepr):
    """A balanced panel.

    Parameters
    ----------
    times : float64[times], ascending
        Dates are days since 1970-01-01, in UTC if they have a time zone.
    cohorts : float64[units]
        The time at which a unit is treated; `NEVER` for a unit that is never treated.
    outcome : float64[units, times]
    source : the name of the panel in messages
    rows : int64[units], optional
        The first row of each unit in its table, counted from 1, for messages.
    has_lines : whether `rows` are lines of a file
    kind_of_time : a kind of `tables.user_values`: a number, or a date with or without a time zone
    is_loss : whether the outcome is minus a loss
    stored : the type in which the outcome was stored. What differs by its rounding only is equal.
    units : text[units], optional
        The names of the units. Panels with units of one name measure the same string.
    written : float64[units], optional
        The cohorts as the table has them, for messages: `cohorts` are those at the panel's times.
    """

    times: np.ndarray
    cohorts: np.ndarray
    outcome: np.ndarray
    source: str = "panel"
    rows: np.ndarray | None = None
    has_lines: bool = False
    kind_of_time: str = NUMBER
    is_loss: bool = False
    stored: type = float
    units: np.ndarray | None = None
    written: np.ndarray | None = None

    @property
    def treated(self) -> np.ndarray:
        """float64[cohorts], ascending: the times at which units are treated."""
        return np.unique(self.cohorts[np.isfinite(self.cohorts)])

    def to_frame(self) -> pd.DataFrame:
        """A row per unit and time, with the columns that `to_panel` reads.

        Without names, units have their numbers; a cohort that is never treated is infinite.
        """
        n_units, n_times = self.outcome.shape
        units = np.arange(n_units) if self.units is None else self.units
        return pd.DataFrame(
            {
                "unit": np.repeat(units, n_times),
                "time": np.tile(self.times, n_units),
                "cohort": np.repeat(self.cohorts, n_times),
                "outcome": self.outcome.ravel(),
            }
        )

    def place_of(self, cohort: float) -> str:
        if self.rows is None:
            return self.source
        at = self.first_row(cohort)
        return at if self.shown(cohort) == f"{cohort:g}" else f"{at} ({self.shown(cohort)})"

    def first_row(self, cohort: float) -> str:
        return place_of_row(self.source, self.rows[self.cohorts == cohort].min(), self.has_lines)

    def shown(self, time: float) -> str:
        return "never" if time == NEVER else written_moment(self.kind_of_time, time)

    def named(self, cohort: float) -> str:
        """A cohort as the table has it, such as "cohort 1.5"; of several values, the first ones."""
        if self.written is None:
            return named_cohorts([self.shown(cohort)])
        return named_cohorts([*map(self.shown, np.unique(self.written[self.cohorts == cohort]))])

    def first_after(self, cohort: float) -> int:
        """The place of the first time at which a cohort has been treated; len(times) if none."""
        return int(np.searchsorted(self.times, cohort))

    @property
    def observed(self) -> np.ndarray:
        """float64[cohorts]: those with a time before and a time after their treatment."""
        return np.array([g for g in self.treated if 0 < self.first_after(g) < len(self.times)])


@takes(path=FilePath(of_frame="profiles.to_panel(frame)"))
def read_panel(path: str | Path, columns: Mapping[str, str] | None = None) -> Panel:
    """Read a panel from a file with the columns unit, time, cohort and outcome.

    Parameters
    ----------
    path : a .csv, .tsv, .jsonl, .json or .parquet file
    columns : the file's own names of columns, such as {"unit": "document"}; the outcome's may be
        given as that of `outcome` (larger is better) or of `loss` (smaller is better)

    Raises `UserError` if there is no such file, if it cannot be read, or as `to_panel` does.
    """
    file = user_files.opened(path, user_files.TABLES, "a panel")
    named, sign = _named_columns(file.where, file.columns, columns or {})
    return _panel(read_user_table(path, PANEL, named), sign)


@takes(frame=FRAME)
def to_panel(
    frame: pd.DataFrame, source: str = "panel", columns: Mapping[str, str] | None = None
) -> Panel:
    """The panel in a table with one row for each unit and time, in any order.

    A cohort between two times belongs to the later one, the first at which its units have been
    trained on. A column `loss` or `nll` takes the place of `outcome`, with its sign turned. Both is
    said in a line of the log, as are cohorts before the first or after the last time.

    Parameters
    ----------
    frame : columns unit (text or number), time (number or date), cohort (the same; empty or
        infinite: never treated) and outcome (number)
    source : name of the table in messages
    columns : the table's own names of columns, as for `read_panel`

    Raises `UserError` if a column is missing, a value is not of its kind, times cannot be compared,
    a unit has no outcome or two outcomes at a time, a unit has two cohorts, no unit is treated or
    none is never treated, or a cohort has only one unit. The message names the row, counted from 1.
    """
    known = [str(name) for name in frame.columns]
    named, sign = _named_columns(source, known, columns or {})
    return _panel(user_table(frame, PANEL, source, named), sign)


def _named_columns(
    where: str, known: list[str], asked: Mapping[str, str]
) -> tuple[dict[str, str], int]:
    """A table's own names of a panel's columns, and the sign of its outcome: -1 for a loss."""
    outcome, sign = outcome_column(where, known, asked)
    named = {**asked, "outcome": outcome}
    named.pop("loss", None)
    return named, sign


def _panel(table: UserTable, sign: int) -> Panel:
    """The panel in a table; `sign` is -1 if its outcome is a loss."""
    # In the order of their names, so that the order of the rows changes nothing.
    of_unit, units = _sorted(table)
    (time, cohort), kind = table.times("time", "cohort")
    cohort = np.where(np.isnan(cohort), NEVER, cohort)
    for name, wrong in (("time", ~np.isfinite(time)), ("cohort", cohort == -NEVER)):
        if wrong.any():
            raise table.wrong(name, int(wrong.argmax()))
    outcome = table.numbers("outcome")
    of_time, times = pd.factorize(time, sort=True)
    first = np.full(len(units), -1)
    first[of_unit[::-1]] = np.arange(table.n_rows)[::-1]
    _check_cells(table, units, of_unit, len(times), of_time, first)
    _check_one_cohort(table, cohort, first[of_unit])
    values = np.empty((len(units), len(times)))
    values[of_unit, of_time] = outcome if sign > 0 else 0.0 - outcome
    numbers = np.array([table.number(row) for row in first.tolist()])
    about = table.source, numbers, table.lines is not None, kind, sign < 0
    stored, names = table.stored("outcome"), np.array(units, dtype=object)
    found = Panel(times, cohort[first], values, *about, stored, names)
    panel = replace(found, cohorts=at_checkpoints(times, found.cohorts), written=found.cohorts)
    _check_cohorts(panel)
    _say(table, units, found, sign)
    return panel


def at_checkpoints(times: np.ndarray, cohorts: np.ndarray) -> np.ndarray:
    """The first time at which each cohort has been treated; a cohort after the last time stays."""
    places = np.searchsorted(times, cohorts)
    return np.where(places < len(times), times[np.minimum(places, len(times) - 1)], cohorts)


def _sorted(table: UserTable) -> tuple[np.ndarray, list[str]]:
    """The place of each row's unit among the sorted unit names, and these names."""
    found = table.names("unit")
    order = sorted(range(len(found.values)), key=found.values.__getitem__)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[found.places], [found.values[place] for place in order]


def _check_cells(
    table: UserTable,
    units: list[str],
    of_unit: np.ndarray,
    n_times: int,
    of_time: np.ndarray,
    first: np.ndarray,
) -> None:
    cells = of_unit * n_times + of_time
    counts = np.bincount(cells, minlength=len(units) * n_times)
    if counts.max() > 1:
        again = pd.Series(cells).duplicated().to_numpy()
        row = int(again.argmax())
        earlier = int((cells == cells[row]).argmax())
        more = f" ({again.sum()} rows of the table are such)" if again.sum() > 1 else ""
        raise UserError(
            f"{table.at(row)}: unit {units[of_unit[row]]!r} is at time {table.value('time', row)} "
            f"a second time, after {table.another(earlier)}; keep one of its rows{more}"
        )
    if counts.min() == 0:
        unit, place = divmod(int(counts.argmin()), n_times)
        time = table.value("time", int((of_time == place).argmax()))
        raise UserError(
            f"{table.at(first[unit])}: unit {units[unit]!r} has no outcome at time {time}; every "
            f"unit needs one at each of the {n_times} times: add the row, or leave the unit or the "
            "time out"
        )


def _check_one_cohort(table: UserTable, cohort: np.ndarray, first: np.ndarray) -> None:
    if (changes := cohort != cohort[first]).any():
        row = int(changes.argmax())
        here, there = (
            "never" if cohort[each] == NEVER else table.value("cohort", each)
            for each in (row, first[row])
        )
        raise UserError(
            f"{table.at(row)}: unit {table.value('unit', row)} has cohort {here} here and {there} "
            f"in {table.another(first[row])}; correct one of them: a unit has one cohort, the time "
            "at which it was first trained on"
        )


def _check_cohorts(panel: Panel) -> None:
    if not len(panel.treated):
        raise UserError(f"{panel.source}: no unit is ever treated; give the treated ones a cohort")
    cohorts, counts = np.unique(panel.cohorts, return_counts=True)
    if cohorts[-1] != NEVER:
        raise UserError(
            f"{panel.source}: every unit is treated, so there is nothing to compare with; add "
            "units that the model is never trained on, with an empty cohort"
        )
    alone = cohorts[counts == 1]
    if not len(alone):
        return
    if alone[0] == NEVER:
        what, remedy = "only one unit is never treated", "add units"
    else:
        what = f"{panel.named(alone[0])} has only one unit"
        if len(treated := alone[alone != NEVER]) > 1:
            others = panel.written[np.isin(panel.cohorts, treated[1:])]
            what += f", and so {'have' if len(treated) > 2 else 'has'} {_named(panel, others)}"
        remedy = (
            "add units, leave these out, or leave out some times: units that are trained on "
            "between the same two times are one cohort"
        )
        if alone[alone != NEVER].max() > panel.times[-1]:
            remedy += "; within this panel, a unit of a cohort after the last time is never treated"
    raise UserError(f"{panel.first_row(alone[0])}: {what}, so its spread is unknown; {remedy}")


def _say(table: UserTable, units: list[str], found: Panel, sign: int) -> None:
    """Log a line for each value that was not taken as it was written."""

    def say(what: str) -> None:
        warnings.warn(Notice(f"{table.source}: {what}"), stacklevel=6)

    if sign < 0:
        say(
            f"the column {table.written_as['outcome']!r} is taken as a loss: the outcome is minus "
            "the loss, so that larger is better"
        )
    cohorts, times = found.treated, found.times
    places = np.searchsorted(times, cohorts)
    is_between = (places > 0) & (places < len(times)) & ~np.isin(cohorts, times)
    meanings = (
        (
            is_between,
            "between two times: trained on, as far as can be seen, at the later one, such as "
            f"{_example(found, cohorts, is_between)}",
        ),
        (
            cohorts < times[0],
            f"before the first time, {found.shown(times[0])}: there is no outcome from before its "
            "training",
        ),
        (
            cohorts > times[-1],
            f"after the last time, {found.shown(times[-1])}: there is no outcome from after its "
            "training",
        ),
    )
    for which, meaning in meanings:
        if which.any():
            say(f"{_named(found, cohorts[which])}: {meaning}")
    sizes = np.array([(found.cohorts == cohort).sum() for cohort in (*cohorts, NEVER)])
    *is_small, few_untreated = sizes < FEWEST_UNITS
    # Of two small groups, the bands are wide.
    if not all(is_small) if few_untreated else any(is_small):
        small = "the units never treated" if few_untreated else _named(found, cohorts[is_small])
        say(
            f"{small}: fewer than {FEWEST_UNITS}, compared with more, so bands are too narrow: in "
            "12 % of panels, not in 5 %, an effect is significant by chance"
        )
    for what in _repetitions(found):
        say(what)
    if groups := same_when_composed(units):
        more = f" (and {len(groups) - 1} such groups more)" if len(groups) > 1 else ""
        say(
            f"units {' and '.join(map(ascii, groups[0]))}{more} have names of the same characters "
            "in two forms, and count as different units; normalise the names (NFC) if they are not"
        )


def _repetitions(panel: Panel) -> Iterator[str]:
    """Sentences on repeated times, units or columns of the panel."""
    outcome, times = panel.outcome, panel.times
    never_changes = len(times) > 1 and bool((outcome == outcome[:, :1]).all())
    if never_changes:
        yield "no unit's outcome ever changes; check that the outcomes are those of their times"
    if (outcome == np.round(outcome)).all():
        return  # counts, such as of right answers, are often equal
    if n_copies := len(outcome) - len(np.unique(outcome, axis=0)):
        yield (
            f"{n_copies} of {len(outcome)} units have the outcomes of another one at every time; "
            "keep one of each if they are copies, because copies make bands too narrow"
        )
    if never_changes:
        return
    # Sorted, so that equal columns are neighbours
    order = np.lexsort(outcome)
    is_equal = (outcome[:, order[1:]] == outcome[:, order[:-1]]).all(axis=0)
    if is_equal.any():
        place = int(is_equal.argmax())
        first, second = sorted(times[order[place : place + 2]])
        yield (
            f"all units have the same outcomes at the times {panel.shown(first)} and "
            f"{panel.shown(second)}; leave one of them out if it is the same checkpoint"
        )


def _example(panel: Panel, cohorts: np.ndarray, which: np.ndarray) -> str:
    if not which.any():
        return ""
    cohort = cohorts[which][0]
    return f"{panel.shown(cohort)} at {panel.shown(panel.times[panel.first_after(cohort)])}"


def _named(panel: Panel, cohorts: np.ndarray) -> str:
    return named_cohorts([*map(panel.shown, np.unique(cohorts))])


def named_cohorts(names: Sequence[str]) -> str:
    """Cohorts in a message: "cohort 1", or "cohorts 1, 2 and 3 more"."""
    said = ", ".join(names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return f"cohort{'s' if len(names) > 1 else ''} {said}{more}"
