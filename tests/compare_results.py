"""Compare two folders of results, file by file: the same seeds must give the same numbers.

python tests/compare_results.py FOLDER OTHER [--allow-new] [--renamed FILE]

Tables are compared column by column, with their types and the order of their rows, traces, weights
and figures byte by byte, and the report line by line. Values that depend on the machine or on the
time are left out, and so are the names of files in the report; the lists below name them. Every
difference is a line, and the exit status is 1 if there is one. With --allow-new, files, columns,
claims and keys of manifests that only OTHER has are listed as well, but are no differences.

With --renamed, files and columns of FOLDER get the names that they have in OTHER first. FILE has a
row of three columns, with tabs between them, for each name: `where`, `old` and `new`. If `where` is
`file`, `old` is a pattern of paths such as density/*/bins.parquet, and `new` the name of the file;
otherwise `where` is a pattern of paths of tables that have the column `old`. Patterns are of
`fnmatch`, and a `*` crosses folders. Values of the column `quantity` are names of columns, too.
"""

import argparse
import csv
import fnmatch
import json
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

# Columns of wall-clock time, by name in any table
TIMINGS = {
    "written",
    "started",
    "seconds",
    "seconds_share",
    "hours",
    "training_hours",
    "measuring_hours",
    "checkpoint_hours",
    "gpu_hours",
}
# Of such a row, these columns hold what its `quantity` names.
QUANTITY, VALUES = "quantity", {"mean", "lower", "upper"}
# Keys of manifests that a machine, an hour or a revision of the code decides
PASSING = {
    "written",
    "started",
    "wall_time_seconds",
    "training_seconds",
    "training_tokens_per_second",
    "peak_memory_bytes",
    "peak_gpu_memory_bytes",
    "visible_devices",
    "packages",
    "hardware",
    "revision",
    "code",
    "earlier_code",
}
BYTE_BY_BYTE = {".safetensors", ".svg", ".png"}
NOT_COMPARED = {".zst"}  # the code that made the results
# In the report: durations, the revision of the code, and links to tables with their names
PASSING_WORDS = re.compile(
    r"(?<=<td>)[\d,.]+ (?:ms|s|min|h)(?=</td>)|(?<=<td>)[0-9a-f]{40}(?:-dirty)?(?=</td>)"
    r"|<a href=\"[^\"]+\.(?:parquet|json)\">[^<]+</a>"
)
CLAIM = ("claim", "language")  # names a row of the claims


@dataclass(frozen=True)
class Finding:
    """A line to print, and whether it is only about something that only OTHER has."""

    line: str
    new: bool = False


@dataclass(frozen=True)
class Renamed:
    """New names of files and columns; `rows` are of a file for --renamed."""

    rows: list[tuple[str, str, str]] = field(default_factory=list)

    @classmethod
    def read(cls, path: Path) -> "Renamed":
        with path.open(newline="") as lines:
            return cls(
                [
                    (r["where"], r["old"], r["new"])
                    for r in csv.DictReader(lines, dialect="excel-tab")
                ]
            )

    def file(self, name: str) -> str:
        for where, old, new in self.rows:
            if where == "file" and fnmatch.fnmatch(name, old):
                return str(Path(name).with_name(new))
        return name

    def table(self, name: str, table: pa.Table) -> pa.Table:
        names = {old: new for where, old, new in self.rows if fnmatch.fnmatch(name, where)}
        table = table.rename_columns([names.get(column, column) for column in table.column_names])
        if names and QUANTITY in table.column_names:
            place = table.column_names.index(QUANTITY)
            values = [names.get(value, value) for value in table[QUANTITY].to_pylist()]
            table = table.set_column(place, table.field(place), [values])
        return table


def compare(folder: Path, other: Path, renamed: Renamed) -> Iterator[Finding]:
    """Everything in which two folders of results differ."""
    ours = {renamed.file(name): name for name in files(folder)}
    theirs = files(other)
    for name in sorted(ours.keys() | theirs):
        if name not in theirs:
            yield Finding(f"{name}: missing in {other}")
        elif name not in ours:
            yield Finding(f"{name}: only in {other}", new=True)
        else:
            for found in compare_files(folder / ours[name], other / name, name, renamed):
                yield Finding(f"{name}: {found.line}", found.new)


def files(folder: Path) -> set[str]:
    """The results in a folder; hidden folders hold what is not finished."""
    found = {path.relative_to(folder) for path in folder.rglob("*") if path.is_file()}
    return {
        str(path)
        for path in found
        if path.suffix not in NOT_COMPARED and not any(part.startswith(".") for part in path.parts)
    }


def compare_files(one: Path, two: Path, name: str, renamed: Renamed) -> Iterator[Finding]:
    """The differences between two files; `name` is the path in the folder of the second one."""
    byte_by_byte = one.suffix in BYTE_BY_BYTE or one.name == "trace.parquet"
    if byte_by_byte and one.read_bytes() != two.read_bytes():
        yield Finding("its bytes differ")
    if one.suffix == ".parquet":
        tables = renamed.table(name, pq.read_table(one)), pq.read_table(two)
        yield from (compare_claims if one.name == "claims.parquet" else compare_tables)(*tables)
    elif one.suffix == ".html":
        yield from compare_reports(one.read_text(), two.read_text())
    elif one.suffix == ".json":
        yield from compare_json(json.loads(one.read_text()), json.loads(two.read_text()))
    elif one.suffix not in BYTE_BY_BYTE:
        yield Finding(f"no way to compare {one.suffix or 'such a file'} is known")


def compare_reports(one: str, two: str) -> Iterator[Finding]:
    """The first difference between two reports, without what the machine or the time decides."""
    lines = [PASSING_WORDS.sub("...", text).splitlines() for text in (one, two)]
    for number, (ours, theirs) in enumerate(zip(*lines, strict=False), start=1):
        if ours != theirs:
            place = next(n for n in range(len(ours) + 1) if ours[: n + 1] != theirs[: n + 1])
            shown = (text[max(0, place - 20) : place + 40] for text in (ours, theirs))
            yield Finding("line {}: {!r}, and {!r} in the other".format(number, *shown))
            return
    if len(lines[0]) != len(lines[1]):
        yield Finding(f"{len(lines[0]):,} lines, and {len(lines[1]):,} in the other")


def compare_claims(one: pa.Table, two: pa.Table) -> Iterator[Finding]:
    """The differences between two tables of claims, whose claims must be in the same order."""
    rows = [list(zip(*(t[name].to_pylist() for name in CLAIM), strict=True)) for t in (one, two)]
    for claim in rows[0]:
        if claim not in rows[1]:
            yield Finding(f"claim missing: {' '.join(claim)}")
    for claim in rows[1]:
        if claim not in rows[0]:
            yield Finding(f"claim only in the other: {' '.join(claim)}", new=True)
    shared = set(rows[0]) & set(rows[1])
    kept = [
        table.filter(pa.array([row in shared for row in named]))
        for table, named in zip((one, two), rows, strict=True)
    ]
    yield from compare_tables(*kept)


def compare_tables(one: pa.Table, two: pa.Table) -> Iterator[Finding]:
    """The differences between two tables."""
    for name in one.column_names:
        if name not in two.column_names:
            yield Finding(f"column {name}: missing")
    for name in two.column_names:
        if name not in one.column_names:
            yield Finding(f"column {name}: only in the other", new=True)
    shared = [name for name in one.column_names if name in two.column_names]
    if shared != [name for name in two.column_names if name in shared]:
        yield Finding("its columns are in another order")
    if one.num_rows != two.num_rows:
        yield Finding(f"{one.num_rows:,} rows, and {two.num_rows:,} in the other")
        return
    for name in shared:
        if name not in TIMINGS:
            yield from compare_columns(name, one, two)


def compare_columns(name: str, one: pa.Table, two: pa.Table) -> Iterator[Finding]:
    """The differences between a column of two tables."""
    ours, theirs = one[name].combine_chunks(), two[name].combine_chunks()
    if ours.type != theirs.type:
        yield Finding(f"column {name}: {ours.type}, and {theirs.type} in the other")
        return
    differs = different(ours, theirs)
    if name in VALUES and QUANTITY in one.column_names:
        timed = [quantity in TIMINGS for quantity in one[QUANTITY].to_pylist()]
        differs &= ~np.array(timed, dtype=bool)
    if differs.any():
        row = int(differs.argmax())
        yield Finding(
            f"column {name}: {differs.sum():,} of {len(differs):,} values differ, first in row "
            f"{row}: {ours[row].as_py()!r}, and {theirs[row].as_py()!r} in the other"
        )


def different(ours: pa.Array, theirs: pa.Array) -> np.ndarray:
    """Which values differ: floats in any bit, and null from everything but null."""
    if pa.types.is_floating(ours.type):
        nulls = [np.asarray(array.is_null()) for array in (ours, theirs)]
        bits = [np.asarray(array.fill_null(0.0)).view(f"i{ours.type.bit_width // 8}")
                for array in (ours, theirs)]  # fmt: skip
        return (nulls[0] != nulls[1]) | (bits[0] != bits[1])
    pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=True)
    return np.array([a != b for a, b in pairs], dtype=bool)


def compare_json(one: object, two: object, key: str = "") -> Iterator[Finding]:
    """The differences between the contents of two JSON files."""
    if not (isinstance(one, dict) and isinstance(two, dict)):
        if json.dumps(one) != json.dumps(two):
            yield Finding(f"{key}: {one!r}, and {two!r} in the other")
        return
    for name in [*one, *(name for name in two if name not in one)]:
        path = f"{key}/{name}" if key else name
        if name in PASSING:
            continue
        if name not in two:
            yield Finding(f"{path}: missing")
        elif name not in one:
            yield Finding(f"{path}: only in the other", new=True)
        else:
            yield from compare_json(one[name], two[name], path)


def main(words: list[str] | None = None) -> int:
    """The command line; the exit status is 1 if there is a difference."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="a folder of results")
    parser.add_argument("other", type=Path, help="the folder that it is compared with")
    parser.add_argument("--allow-new", action="store_true", help="OTHER may have more")
    parser.add_argument("--renamed", type=Path, help="a file of names that are new in OTHER")
    arguments = parser.parse_args(words)
    for folder in (arguments.folder, arguments.other):
        if not folder.is_dir() or not files(folder):
            print(f"error: {folder}: no folder of results", file=sys.stderr)
            return 1
    renamed = Renamed.read(arguments.renamed) if arguments.renamed else Renamed()
    differences = new = 0
    for found in compare(arguments.folder, arguments.other, renamed):
        allowed = found.new and arguments.allow_new
        new, differences = new + allowed, differences + (not allowed)
        print(f"new: {found.line}" if allowed else found.line)
    compared = len(set(map(renamed.file, files(arguments.folder))) & files(arguments.other))
    counted = f"{compared:,} files compared: {differences:,} differences"
    print(counted + (f", {new:,} new things" if arguments.allow_new else ""))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
