"""Files of tables that users bring: CSV, TSV, JSON, JSONL, Parquet, lines, and folders of texts.

Files of text may be compressed: NAME.csv.gz. Values stay as the file has them: this module converts
nothing to a number, a date or a missing value, except for empty cells and nulls.
"""

from __future__ import annotations

import csv
import itertools
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from palimpsest.errors import UserError, searched
from palimpsest.lazy_import import lazy_import
from palimpsest.plain_text import GZIP, read_lines, read_text
from palimpsest.tables.user_values import WrittenNumber

pa = lazy_import("pyarrow")
parquet = lazy_import("pyarrow.parquet")

CSV, TSV, JSONL, JSON, PARQUET, TXT = ".csv", ".tsv", ".jsonl", ".json", ".parquet", ".txt"
TABLES = (CSV, TSV, JSONL, JSON, PARQUET)
TEXTS = (*TABLES, TXT)
COMPRESSED = (CSV, TSV, JSONL, JSON, TXT)  # formats of text, which may also end with .gz
LINE = "text"  # the only column of a .txt file, in which a line is a text, and of a list of texts
FILE_NAME = "id"  # the other column of a folder of .txt files, in which a file is a text
DELIMITERS = {CSV: ",", TSV: "\t"}
AT_ONCE = 4096  # rows read at a time
LONGEST = 2**31 - 1  # characters of a cell
QUOTES = 'put one around the whole cell, and double each inside of it, such as """Hi"" he said"'


class Rows(NamedTuple):
    """Some rows: the cells of each column, and the line on which each row begins, in a text file.

    A list in JSON has no lines.
    """

    cells: dict[str, pa.Array | list]
    lines: list[int] | None


class Opened(NamedTuple):
    """A file whose header is read.

    `where` is the place of the header in messages, and `read` yields the rows of some columns.
    """

    where: str
    columns: list[str]
    read: Callable[[list[str]], Iterator[Rows]]


def format_of(path: str | Path) -> str:
    """The ending that names a format: .csv, also of NAME.csv.gz."""
    path = Path(path)
    compressed = Path(path.stem).suffix.lower()
    if path.suffix.lower() == GZIP and compressed in COMPRESSED:
        return compressed
    return path.suffix.lower()


def listed(formats: Sequence[str]) -> str:
    return f"{', '.join(formats[:-1])} or {formats[-1]}"


def wrong_path(path: str, formats: Sequence[str], what: str) -> str | None:
    """What is wrong with a path in the configuration; `what` names the file, such as "a panel"."""
    if set("{}") & set(path):
        return f"{path!r} is not allowed; must be a path without braces"
    if TXT in formats and Path(path).is_dir():
        try:
            text_files(path)
        except UserError as error:
            return str(error)
        return None
    if not Path(path).is_file():
        found = "a folder" if Path(path).is_dir() else "no such file"
        return f"{found}: {path}; {what} is one {listed(formats)} file{searched(path)}"
    if format_of(path) not in formats:
        return f"{path!r} is not a {listed(formats)} file; save it as one"
    return None


def has_own_columns(path: str | Path) -> bool:
    """Whether a file names its columns; a .txt file and a folder of them do not."""
    return format_of(path) != TXT and not Path(path).is_dir()


def holds_texts(path: str | Path) -> bool:
    """Whether a path is a folder with .txt files."""
    return Path(path).is_dir() and any(format_of(file) == TXT for file in Path(path).iterdir())


def text_files(folder: str | Path) -> dict[str, Path]:
    """The .txt files of a folder by their names without the ending, in order.

    Hidden files do not count. Raises `UserError` if there is no such file, if there is anything
    else, or if two files differ in their endings alone.
    """
    found: dict[str, Path] = {}
    for path in sorted(Path(folder).iterdir()):
        if path.name.startswith("."):
            continue
        if format_of(path) != TXT or not path.is_file():
            raise UserError(
                f"{folder}: has {path.name!r}, which is no {TXT} file; keep only {TXT} files in "
                "this folder, each of them a text"
            )
        name = path.name[: path.name.lower().rindex(TXT)]
        if name in found:
            raise UserError(
                f"{folder}: {found[name].name!r} and {path.name!r} have the same name; rename one"
            )
        found[name] = path
    if not found:
        raise UserError(f"{folder}: has no {TXT} files; add them, each of them a text")
    return found


def opened(path: str | Path, formats: Sequence[str], what: str) -> Opened:
    """Open a file of a table, or a folder of texts; `what` names it in messages, such as "a panel".

    Raises `UserError` if there is no such file, or if it cannot be read as its name says. Reading
    its rows raises the same error, which then names the row.
    """
    if TXT in formats and Path(path).is_dir():
        texts = text_files(path)
        return Opened(str(path), [FILE_NAME, LINE], lambda columns: _texts_of(texts, columns))
    if not Path(path).is_file():
        raise UserError(f"{path}: no such file; {what} is a {listed(formats)} file")
    kind = format_of(path)
    if kind not in formats:
        raise UserError(
            f"{path}: {what} cannot be read from {kind or 'such a file'}; save it as "
            f"{listed(formats)}"
        )
    if kind == PARQUET:
        return _opened_parquet(path)
    if kind in DELIMITERS:
        return _opened_delimited(path, DELIMITERS[kind])
    if kind == TXT:
        return Opened(
            str(path), [LINE], lambda columns: _in_parts(_lines(path), columns, with_lines=True)
        )
    return _opened_json(path, kind == JSONL or _has_an_object_a_line(path))


def delimited(
    path: str | Path, delimiter: str, quoted: bool = True
) -> Iterator[tuple[int, list[str]]]:
    """Yield the cells of each row of a text file, header included, and the row's first line.

    Empty lines are skipped. Raises `UserError` if the file cannot be read, or if a cell continues
    in the next line of a file with tabs: such a cell is more often two rows with a quotation mark
    each.
    """
    csv.field_size_limit(LONGEST)
    quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    before = 0  # the last line of the previous row
    lines = read_lines(path, newline="")
    reader = csv.reader(lines, delimiter=delimiter, quoting=quoting, strict=True)
    try:
        for cells in reader:
            if delimiter == "\t" and reader.line_num > before + 1:
                raise UserError(
                    f"{path}:{before + 1}: a cell that begins with a quotation mark ends on "
                    f"line {reader.line_num}; {QUOTES}, or save texts of several lines as {CSV}"
                )
            if cells:
                yield before + 1, cells
            before = reader.line_num
    except csv.Error:
        raise UserError(
            f"{path}:{before + 1}: a cell begins with a quotation mark and does not end with one; "
            f"{QUOTES}"
        ) from None


def _opened_json(path: str | Path, with_lines: bool) -> Opened:
    """The columns are the fields of the first objects. An object may lack some of the fields."""
    objects = _objects_of_lines if with_lines else _objects_of_list
    first = list(itertools.islice(objects(path), AT_ONCE))
    number = first[0][0] if first else 1
    return Opened(
        f"{path}:{number}" if with_lines else str(path),
        list(dict.fromkeys(name for _, fields in first for name in fields)),
        lambda columns: _in_parts(objects(path), columns, with_lines),
    )


def _has_an_object_a_line(path: str | Path) -> bool:
    """Whether a .json file is JSONL by its content, as those of many published datasets are."""
    filled = (line.strip() for line in read_lines(path) if line.strip())
    first, second = itertools.islice(itertools.chain(filled, ("", "")), 2)
    return first.startswith("{") and first.endswith("}") and second.startswith("{")


def _opened_delimited(path: str | Path, delimiter: str) -> Opened:
    line, header = next(delimited(path, delimiter), (1, []))

    def read(columns: list[str]) -> Iterator[Rows]:
        if not header:
            return
        places = [header.index(name) for name in columns]
        rows = _of_one_width(path, header, delimited(path, delimiter))
        for part in _parts(rows):
            # An empty cell is missing; every other cell is as written.
            cells = ([row[place] or None for _, row in part] for place in places)
            arrays = (pa.array(each, pa.large_string()) for each in cells)
            yield Rows(dict(zip(columns, arrays, strict=True)), [line for line, _ in part])

    return Opened(f"{path}:{line}", header, read)


def _of_one_width(
    path: str | Path, header: list[str], rows: Iterator[tuple[int, list[str]]]
) -> Iterator[tuple[int, list[str]]]:
    """The rows after the header and their lines; `UserError` for more or fewer cells."""
    next(rows, None)
    for line, cells in rows:
        if len(cells) != len(header):
            raise UserError(
                f"{path}:{line}: has {len(cells)} cells, and the header has {len(header)}; give "
                "every row a cell for each column, with quotes around what holds a separator"
            )
        yield line, cells


def _opened_parquet(path: str | Path) -> Opened:
    try:
        file = parquet.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        raise broken(path, error, "Parquet") from None

    def read(columns: list[str]) -> Iterator[Rows]:
        n_before = 0
        try:
            for batch in file.iter_batches(AT_ONCE, columns=columns):
                for name in columns:
                    check_texts(path, name, batch.column(name), n_before)
                yield Rows({name: batch.column(name) for name in columns}, None)
                n_before += len(batch)
        except (pa.ArrowException, OSError) as error:
            raise broken(path, error, "Parquet") from None

    return Opened(str(path), file.schema_arrow.names, read)


def check_texts(path: str | Path, name: str, cells: pa.Array, n_before: int) -> None:
    """Raise `UserError` if a text is not UTF-8, because writers of Arrow's formats do not check.

    Raises Arrow's own error if the cells are damaged.
    """
    # One dictionary serves a whole chunk of the file.
    cells = cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells
    try:
        cells.validate(full=True)
    except pa.ArrowInvalid:
        for row, cell in enumerate(cells, n_before + 1):
            try:
                cell.as_py()
            except UnicodeDecodeError as found:
                byte = found.object[found.start]
                raise UserError(
                    f"{path}: row {row}: {name!r} is not UTF-8 text (byte 0x{byte:02x}); save the "
                    "table again, with texts in UTF-8"
                ) from None
        raise


def broken(path: str | Path, error: Exception, form: str) -> UserError:
    first = str(error).partition("\n")[0]
    return UserError(f"{path}: cannot be read as {form}: {first}; save it again")


def _parts(rows: Iterable) -> Iterator[list]:
    rows = iter(rows)
    while part := list(itertools.islice(rows, AT_ONCE)):
        yield part


def _in_parts(
    objects: Iterator[tuple[int, dict]], columns: list[str], with_lines: bool
) -> Iterator[Rows]:
    for part in _parts(objects):
        cells = {name: [fields.get(name) for _, fields in part] for name in columns}
        yield Rows(cells, [number for number, _ in part] if with_lines else None)


def _lines(path: str | Path) -> Iterator[tuple[int, dict]]:
    """Yield each line of a text file that is not empty, with its number, as an object."""
    for number, line in enumerate(read_lines(path), 1):
        if line.strip():
            yield number, {LINE: line.rstrip("\n")}


def _texts_of(files: Mapping[str, Path], columns: list[str]) -> Iterator[Rows]:
    """The texts of .txt files, without the empty lines at their ends."""

    def objects() -> Iterator[tuple[int, dict]]:
        for number, (name, path) in enumerate(files.items(), 1):
            text = read_text(path).rstrip("\n")
            if not text.strip():
                raise UserError(f"{path}: has no words; delete the file, or write its text")
            yield number, {FILE_NAME: name, LINE: text}

    return _in_parts(objects(), columns, with_lines=False)


def _objects_of_lines(path: str | Path) -> Iterator[tuple[int, dict]]:
    for number, fields in _lines(path):
        yield number, object_in(f"{path}:{number}", fields[LINE], "write one object a line")


def _objects_of_list(path: str | Path) -> Iterator[tuple[int, dict]]:
    remedy = "write a list of objects, one a row"
    rows = _json(str(path), read_text(path), remedy)
    if not isinstance(rows, list):
        raise UserError(f"{path}: is no list; {remedy}")
    for number, fields in enumerate(rows, 1):
        if isinstance(fields, str):
            fields = {LINE: fields}
        if not isinstance(fields, dict):
            raise UserError(f"{path}: row {number}: is no JSON object; {remedy}")
        yield number, fields


def object_in(where: str, text: str, remedy: str) -> dict:
    fields = _json(where, text, remedy)
    if not isinstance(fields, dict):
        raise UserError(f"{where}: is no JSON object; {remedy}")
    return fields


def _json(where: str, text: str, remedy: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_distinct, parse_float=_finite, parse_int=_whole)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: is not JSON ({error}); {remedy}") from None


def _distinct(pairs: list[tuple[str, object]]) -> dict:
    """Raises an error for two equal names; Python's own reader keeps the last value."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has the field {twice!r} twice")
    return fields


def _finite(text: str) -> WrittenNumber:
    """The number in a text. Python's own reader takes 1e999 as infinite."""
    if math.isinf(number := WrittenNumber(text)):
        raise ValueError(f"the number {text:.60} is too large")
    return number


def _whole(text: str) -> int | WrittenNumber:
    """The whole number in a text. Python would write -0 as 0, so -0 stays as written."""
    return WrittenNumber(text) if text == "-0" else int(text)
