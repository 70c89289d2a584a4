"""Tables that users bring, from a file or a frame, checked against the kind that is expected.

One set of rules holds for every use:

- Names are text, exactly as written: `01` and `1`, `1e5` and `100000`, `NA` and `null` are
  different names. Only an empty cell or a true null is missing.
- Times are compared by what they mean, whatever their type, unit and time zone, and numbers that
  are equal up to rounding are one time. Numbers and dates, and dates with and without a time zone,
  cannot be compared, and are refused.
- A message names the file, the row, the column and the value as written.
"""

from __future__ import annotations

import itertools
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from palimpsest.errors import UserError
from palimpsest.tables import user_files
from palimpsest.tables.kinds import LIST, NAME, NUMBER, TIME, TRUTH, Column, UserKind
from palimpsest.tables.user_columns import named_columns
from palimpsest.tables.user_values import (
    MICROSECONDS_OF_DAY,
    NUMERAL,
    OUTSIDE,
    Moment,
    moment_in,
    name_in,
    number_in,
    texts_in,
    truth_in,
    written,
)
from palimpsest.tables.user_values import NUMBER as A_NUMBER

Cells = pa.ChunkedArray | list
ID = user_files.FILE_NAME  # the column of a text's name
# Two times are equal if they differ by no more than the rounding of decimal sums.
RELATIVE, ABSOLUTE = 2.0**-46, 2.0**-50  # of the time itself, and of the largest time
WHAT = {
    NAME: "a name: a text or a number",
    NUMBER: "a finite number",
    TIME: "a time: a number, or a date such as 2024-01-31",
    TRUTH: "true or false",
    LIST: "a text, or a list of texts",
}
TEXT_TYPES = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
NUMERAL_CELL = rf"^[ \t]*{NUMERAL.pattern}[ \t]*$"


class Factorised(NamedTuple):
    """A column as places in a list of its values; -1 where a cell is missing."""

    places: np.ndarray
    values: list

    def by_row(self, missing: object = None) -> np.ndarray:
        """object[rows]: the value of each row; `missing` where a cell is missing."""
        return np.array([*self.values, missing], dtype=object)[self.places]

    def first_rows(self) -> np.ndarray:
        """int64[values]: the first row of each value."""
        first = np.zeros(len(self.values) + 1, dtype=np.int64)  # the last is of missing cells
        first[self.places[::-1]] = np.arange(len(self.places))[::-1]
        return first[:-1]


class Times(NamedTuple):
    """Columns of times, float64[rows] each, NaN where a cell is missing; dates are in days.

    `kind` is that of `user_values`: a number, or a date without or with a time zone.
    """

    columns: list[np.ndarray]
    kind: str


@dataclass(frozen=True)
class UserTable:
    """The cells of a user's table, as they are written.

    `written_as` has the table's own name of each column of the kind. `lines` has the line of each
    row in the file, if it is a text with a row a line; other rows are counted from 1.
    """

    source: str
    kind: UserKind
    cells: dict[str, Cells]
    written_as: Mapping[str, str]
    n_rows: int
    lines: Sequence[int] | None = None

    def at(self, row: int) -> str:
        """The place in messages of a row counted from 0."""
        return place_of_row(self.source, self.number(row), self.lines is not None)

    def number(self, row: int) -> int:
        """The line of a row in the file; without lines, the row's number from 1."""
        return row + 1 if self.lines is None else self.lines[row]

    def another(self, row: int) -> str:
        """The place in messages of a second row, without the file."""
        return f"{'row' if self.lines is None else 'line'} {self.number(row)}"

    def value(self, name: str, row: int) -> str:
        return written(_item(self.cells[name], row))

    def names(self, name: str) -> Factorised:
        """A column of names; `UserError` if one is no text or number.

        The same if one is missing, and the column must not have empty cells.
        """
        found = _factorised(self.cells[name])
        if not self._column(name).nullable:
            self._check_present(name, found.places >= 0)
        names = self._each(name, found, name_in)
        places, distinct = pd.factorize(np.array(names, dtype=object))
        return Factorised(np.append(places, -1)[found.places], list(distinct))

    def numbers(self, name: str) -> np.ndarray:
        """A column of finite numbers, float64[rows]; `UserError` if a cell is anything else.

        A missing cell is NaN if the column may have empty cells.
        """
        cells = self.cells[name]
        if isinstance(cells, list):
            numbers = np.array([_number_or_nan(cell) for cell in cells], dtype=float)
        else:
            numbers = _numbers(cells)
        wrong = ~np.isfinite(numbers)
        if wrong.any() and self._column(name).nullable:
            wrong &= _factorised(cells).places >= 0
        if wrong.any():
            raise self.wrong(name, int(wrong.argmax()))
        return numbers

    def truths(self, name: str) -> np.ndarray:
        """A column of true and false, bool[rows]; `UserError` if a cell is anything else."""
        found = _factorised(self.cells[name])
        self._check_present(name, found.places >= 0)
        return np.array(self._each(name, found, truth_in), dtype=bool)[found.places]

    def lists(self, name: str) -> list[tuple[str, ...]]:
        """A column of texts, or of lists of texts, of each row; an empty cell is an empty list.

        Raises `UserError` if a cell is anything else, or holds a blank text.
        """
        found = _factorised(self.cells[name])
        lists = [*self._each(name, found, texts_in), ()]  # the place -1 is a missing cell
        return [lists[place] for place in found.places]

    def stored(self, name: str) -> type:
        """The floating type of a column of numbers: float, unless the file has a shorter type."""
        cells = self.cells[name]
        is_short = not isinstance(cells, list) and pa.types.is_floating(cells.type)
        return cells.type.to_pandas_dtype() if is_short else float

    def times(self, *names: str) -> Times:
        """Columns of times that are compared with each other.

        A time may be infinite. Raises `UserError` if a cell is no time, if it is missing and the
        column must not have empty cells, or if two times cannot be compared.
        """
        columns = [self._times(name) for name in names]
        for name, found in zip(names, columns, strict=True):
            if not self._column(name).nullable:
                self._check_present(name, found.places >= 0)
        moments = [self._each(n, found, moment_in) for n, found in zip(names, columns, strict=True)]
        kind = self._one_kind(names, columns, moments)
        known = [np.array([m.at for m in each], dtype=float) for each in moments]
        if kind == A_NUMBER:
            known = _equal_up_to_rounding(known)
        else:
            known = [each / MICROSECONDS_OF_DAY for each in known]
        return Times(
            [
                np.append(each, np.nan)[found.places]
                for each, found in zip(known, columns, strict=True)
            ],
            kind,
        )

    def _times(self, name: str) -> Factorised:
        """A column of times as written; `UserError` for a date that Python cannot represent."""
        try:
            return _factorised(self.cells[name])
        except (OverflowError, ValueError):
            row = next(row for row in range(self.n_rows) if not _has_item(self.cells[name], row))
            raise UserError(
                f"{self.at(row)}: {self.written_as[name]} {OUTSIDE}; mend the row or leave the "
                f"{self.kind.item} out"
            ) from None

    def wrong(self, name: str, row: int, reason: str = "") -> UserError:
        """The error of a cell whose value the column must not hold."""
        column, cell = self._column(name), _item(self.cells[name], row)
        # In JSON, a key may be left out.
        is_json = user_files.format_of(self.source) in (user_files.JSON, user_files.JSONL)
        nothing = "is null or missing" if is_json and cell is None else "is empty"
        what = nothing if _is_missing(cell) else written(cell)
        if not _is_missing(cell):
            what += f" {reason or f'is not {WHAT[column.type]}'}"
        return UserError(
            f"{self.at(row)}: {self.written_as[name]} {what}; mend the row or leave the "
            f"{self.kind.item} out: the column holds {column.meaning}"
        )

    def holds_number(self, name: str, row: int) -> bool:
        """Whether the file has a number in a cell, and not a text of digits."""
        return isinstance(_item(self.cells[name], row), int | float)

    def _column(self, name: str) -> Column:
        return self.kind.columns[self.kind.names.index(name)]

    def _check_present(self, name: str, is_present: np.ndarray) -> None:
        if not is_present.all():
            raise self.wrong(name, int(is_present.argmin()))

    def _each(self, name: str, found: Factorised, read: Callable) -> list:
        """What `read` gives for each distinct value; `UserError` with a bad value's first row."""
        made, bad = [], {}
        for place, value in enumerate(found.values):
            try:
                made.append(read(value))
            except (ValueError, OverflowError) as error:
                bad[place] = str(error)
        if bad:
            rows = found.first_rows()
            first = min(bad, key=rows.__getitem__)
            # The reader gives a reason for a date that cannot be represented and for half a
            # character, and for no other value.
            reason = bad[first] if bad[first].startswith("is ") else ""
            raise self.wrong(name, int(rows[first]), reason)
        return made

    def _one_kind(
        self, names: Sequence[str], columns: list[Factorised], moments: list[list[Moment]]
    ) -> str:
        """The kind of all finite times; `UserError` if they are of two kinds."""
        kinds = {moment.kind for own in moments for moment in own if np.isfinite(moment.at)}
        if len(kinds) < 2:
            return next(iter(kinds), A_NUMBER)
        first = {}  # the first row and column of each kind
        for place, (found, own) in enumerate(zip(columns, moments, strict=True)):
            for row, moment in zip(found.first_rows().tolist(), own, strict=True):
                if np.isfinite(moment.at):
                    first[moment.kind] = min(first.get(moment.kind, (row, place)), (row, place))
        said = [
            f"{self.written_as[names[place]]} {self.value(names[place], row)} in "
            f"{self.another(row)} is {kind}"
            for kind, (row, place) in sorted(first.items(), key=lambda item: item[1])[:2]
        ]
        raise UserError(
            f"{self.source}: {' and '.join(said)}, which cannot be compared; write all times as "
            + ("numbers, or all as dates" if A_NUMBER in first else "dates with a time zone")
        )


def place_of_row(source: str, number: int, is_line: bool) -> str:
    """The place of a row in messages: a line of a file, or the number of a row."""
    return f"{source}:{number}" if is_line else f"{source}: row {number}"


def read_user_table(
    path: str | Path, kind: UserKind, columns: Mapping[str, str] | None = None
) -> UserTable:
    """Read a table from a file: .csv, .tsv, .jsonl, .json or .parquet.

    `columns` has the file's own name of each column whose name differs. Raises `UserError` if the
    file cannot be read, or as `user_table` does.
    """
    file = user_files.opened(path, user_files.TABLES, f"a {kind.name}")
    return table_in(file, str(path), kind, columns)


def table_in(
    file: user_files.Opened, source: str, kind: UserKind, columns: Mapping[str, str] | None = None
) -> UserTable:
    """As `read_user_table`, from a file that is open. `source` names the file in messages."""
    written_as = named_columns(file.where, kind, file.columns, columns or {})
    parts: dict[str, list] = {name: [] for name in kind.names}
    lines = array("q")
    for rows in file.read(list(dict.fromkeys(written_as.values()))):
        for name, parts_of_name in parts.items():
            parts_of_name.append(rows.cells[written_as[name]])
        lines.extend(rows.lines or ())
    cells = {name: _joined(own) for name, own in parts.items()}
    return _checked(source, kind, cells, written_as, lines or None)


def user_table(
    frame: pd.DataFrame, kind: UserKind, source: str, columns: Mapping[str, str] | None = None
) -> UserTable:
    """As `read_user_table`, from a frame. `source` names the frame in messages.

    Raises `UserError` if a column is missing or there twice, or if there is no row.
    """
    written_as = named_columns(source, kind, [str(name) for name in frame.columns], columns or {})
    frame = frame.set_axis([str(name) for name in frame.columns], axis=1)
    cells = {name: _of_series(frame[written_as[name]]) for name in kind.names}
    return _checked(source, kind, cells, written_as, None)


def read_texts(path: str | Path, kind: UserKind, name: str) -> Iterator[tuple[str, object]]:
    """Yield the cells of one column of a file, and where each is.

    The file may be a .txt, or a folder of them. Raises `UserError` as `read_user_table` does, but
    for a file without rows, and if a Parquet file has a column of another type than text.
    """
    for row in read_cells(path, kind, name):
        yield row.where, row.cells[0]


class TextRow(NamedTuple):
    """A row of a file of texts: where it is, its name, and its cells.

    The name is that in the column id, if the file has one, and that of a file in a folder. Without
    either, it is the number of the line in a .txt file, and that of the row, from 1, in others.
    """

    where: str
    name: str
    cells: tuple[object, ...]


def read_cells(path: str | Path, kind: UserKind, name: str, *more: str) -> Iterator[TextRow]:
    """Like `read_texts`, but with the cells of more columns, which the file has (`columns_of`)."""
    file = user_files.opened(path, user_files.TEXTS, f"a {kind.name}")
    column = kind.names[0]
    if not user_files.has_own_columns(path):
        name = user_files.LINE
    elif file.columns:
        named_columns(file.where, kind, file.columns, {column: name}, True)
    are_lines = user_files.format_of(path) == user_files.TXT
    names = [ID] if ID in file.columns and ID not in (name, *more) else []
    n_rows = 0
    for rows in file.read([name, *more, *names]):
        columns = []
        for own in (name, *more):
            cells = rows.cells[own]
            is_list = isinstance(cells, list)
            columns.append(cells if is_list else _texts(cells, f"{path}: column {own!r}"))
        given = [*map(list, (rows.cells[own] for own in names))]
        for row, values in enumerate(zip(*columns, strict=True)):
            n_rows += 1
            number = rows.lines[row] if rows.lines else n_rows
            where = place_of_row(str(path), number, rows.lines is not None)
            called = _name_of_row(where, given[0][row]) if names else None
            yield TextRow(where, called or str(number if are_lines else n_rows), values)


def _name_of_row(where: str, cell: object) -> str | None:
    """The name in a cell, or None if it is empty."""
    cell = cell.as_py() if isinstance(cell, pa.Scalar) else cell
    if _is_missing(cell):
        return None
    try:
        return name_in(cell)
    except ValueError:
        raise UserError(
            f"{where}: {ID!r} is {written(cell)}; must be {WHAT[NAME]}: mend or delete it"
        ) from None


def columns_of(path: str | Path) -> list[str]:
    """The own columns of a file of texts; raises `UserError` if it cannot be read."""
    if not user_files.has_own_columns(path):
        return []
    return user_files.opened(path, user_files.TEXTS, "a text").columns


def _checked(
    source: str,
    kind: UserKind,
    cells: dict[str, Cells],
    written_as: dict[str, str],
    lines: Sequence[int] | None,
) -> UserTable:
    n_rows = len(next(iter(cells.values())))
    if not n_rows:
        raise UserError(f"{source}: has no rows; add them: a {kind.name} has {kind.rows}")
    for name, column in cells.items():
        if not isinstance(column, list) and isinstance(column.type, pa.BaseExtensionType):
            raise UserError(
                f"{source}: column {written_as[name]!r} is of the type {column.type}, which is not "
                "read; save it as text, numbers or dates"
            )
        if _is_in_unknown_zone(column):
            raise UserError(
                f"{source}: column {written_as[name]!r} has the time zone {column.type.tz!r}, "
                "which is not known here; save it in UTC"
            )
    return UserTable(source, kind, cells, written_as, n_rows, lines)


# Cells


def _joined(parts: list[pa.Array | list]) -> Cells:
    if parts and not isinstance(parts[0], list):
        return _plain(pa.chunked_array(parts))
    return list(itertools.chain.from_iterable(parts))


def _plain(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column without dictionaries, whose texts have one type."""
    if pa.types.is_dictionary(cells.type) or pa.types.is_run_end_encoded(cells.type):
        cells = cells.cast(cells.type.value_type)
    if any(is_text(cells.type) for is_text in TEXT_TYPES):
        cells = cells.cast(pa.large_string())
        return pc.if_else(pc.equal(cells, ""), pa.scalar(None, pa.large_string()), cells)
    return cells


def _texts(cells: pa.Array, column: str) -> list:
    plain = _plain(pa.chunked_array([cells]))
    if not pa.types.is_large_string(plain.type) and not pa.types.is_null(plain.type):
        raise UserError(f"{column} is of the type {cells.type}; save it as text")
    return cells.to_pylist()


def _of_series(series: pd.Series) -> Cells:
    """A column of a frame. Values without a type of their own become a list of Python's values."""
    if isinstance(series.dtype, pd.CategoricalDtype):
        series = series.astype(object)
    if series.dtype != object:
        try:
            cells = pa.array(series, from_pandas=True)
            return _plain(
                cells if isinstance(cells, pa.ChunkedArray) else pa.chunked_array([cells])
            )
        except (pa.ArrowException, TypeError):
            series = series.astype(object)
    return list(series)


def _item(cells: Cells, row: int) -> object:
    if isinstance(cells, list):
        return cells[row]
    return _items(cells.slice(row, 1))[0]


def _is_in_unknown_zone(cells: Cells) -> bool:
    if isinstance(cells, list) or not pa.types.is_timestamp(cells.type):
        return False
    return not _has_item(pa.chunked_array([pa.array([0], cells.type)]), 0)


def _has_item(cells: Cells, row: int) -> bool:
    """Whether Python has a value for a cell."""
    try:
        _item(cells, row)
    except (OverflowError, ValueError):
        return False
    return True


def _items(cells: pa.ChunkedArray) -> list:
    """As Python's values. Short floats stay NumPy's, whose type tells that they are short."""
    if pa.types.is_floating(cells.type) and not pa.types.is_float64(cells.type):
        return list(cells.to_numpy())
    return cells.to_pylist()


def _is_missing(cell: object) -> bool:
    """Whether a cell is empty, or a null of any library."""
    if isinstance(cell, str):
        return not cell
    if isinstance(cell, Decimal):
        return cell.is_nan()
    if isinstance(cell, np.datetime64):
        return bool(np.isnat(cell))
    if isinstance(cell, float | np.floating):
        return bool(np.isnan(cell))
    return cell is None or cell is pd.NA or cell is pd.NaT


def _factorised(cells: Cells) -> Factorised:
    if isinstance(cells, list):
        return _factorised_list(cells)
    try:
        encoded = cells.dictionary_encode().unify_dictionaries().combine_chunks()
    except pa.ArrowNotImplementedError:
        return _factorised_list(cells.to_pylist())
    places = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return _without_missing(places, _items(pa.chunked_array([encoded.dictionary])))


def _factorised_list(cells: list) -> Factorised:
    # 1, True, 1.0 and 1.00 are equal in Python, but written differently.
    keys = [(type(cell), cell, str(cell)) for cell in cells]
    try:
        order = {key: place for place, key in enumerate(dict.fromkeys(keys))}
    except TypeError:  # a list, or another value that cannot be a key
        return _without_missing(np.arange(len(cells)), cells)
    return _without_missing(np.array([order[key] for key in keys]), [cell for _, cell, _ in order])


def _without_missing(places: np.ndarray, values: list) -> Factorised:
    is_present = np.array([not _is_missing(value) for value in values], dtype=bool)
    moved = np.append(np.where(is_present, np.cumsum(is_present) - 1, -1), -1)
    return Factorised(moved[places], list(itertools.compress(values, is_present)))


def _number_or_nan(cell: object) -> float:
    try:
        return np.nan if _is_missing(cell) else number_in(cell)
    except ValueError:
        return np.nan


def _numbers(cells: pa.ChunkedArray) -> np.ndarray:
    """The numbers in a column, float64[rows]; NaN where there is none."""
    kind = cells.type
    if pa.types.is_decimal(kind):
        # Through text, because Arrow's own conversion may be off by the last bit.
        cells = cells.cast(pa.string()).cast(pa.large_string())
    if pa.types.is_large_string(cells.type):
        is_number = pc.match_substring_regex(cells, NUMERAL_CELL)
        cells = pc.if_else(is_number, cells, pa.scalar(None, pa.large_string()))
        cells = pc.replace_substring_regex(cells, r"^[ \t]*\+?|[ \t]+$", "")
    elif not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return np.full(len(cells), np.nan)
    numbers = cells.cast(pa.float64(), safe=False).combine_chunks()
    return numbers.to_numpy(zero_copy_only=False).astype(float)


def _equal_up_to_rounding(columns: list[np.ndarray]) -> list[np.ndarray]:
    """The columns with one number for all numbers that are equal up to rounding.

    The one number is that with the fewest digits, such as 0.3 for 0.1 + 0.2. Whole numbers are
    never rounded.
    """
    numbers = np.unique(np.concatenate(columns))
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return columns
    near = np.diff(numbers) <= np.maximum(
        RELATIVE * np.abs(numbers[1:]), ABSOLUTE * np.abs(numbers).max()
    )
    is_whole = numbers == np.round(numbers)
    near &= ~(is_whole[1:] & is_whole[:-1])
    group = np.concatenate([[0], np.cumsum(~near)])
    chosen = [
        min(own, key=lambda number: (len(repr(float(number))), number))
        for own in np.split(numbers, np.flatnonzero(~near) + 1)
    ]
    known = dict(zip(numbers.tolist(), np.array(chosen)[group].tolist(), strict=True))
    return [np.array([known.get(at, at) for at in column.tolist()]) for column in columns]
