"""Mutations of panels: the same panel in another notation, and a panel with a damage."""

import io
import json
import random
import re
from collections.abc import Callable
from decimal import Decimal

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from helpers.mutations.judge import Mutation

N_TIMES = 4
# Names that a reader of tables likes to take for numbers, for nothing, or for each other
UNITS = ("01", "1", "1e5", "100000", "NA", "nan", "None", "true", "é", "a b", "0x10", "1.0")
PLACES = (1, 1, 1, 1, 2, 2, 2, None, None, None, None, None)  # of each unit's cohort in the times
DAY = pd.Timestamp("2024-01-01")
STEPS = (0, 1000, 2000, 3000)
# Multiples of an eighth, which every type of number can hold
OUTCOMES = [
    [-((7 * unit + 5 * time) % 23) / 8 - unit for time in range(N_TIMES)]
    for unit in range(len(UNITS))
]


def canonical(places: list[int | None], outcomes: list[list[float]]) -> bytes:
    """A panel by meaning: for each unit its cohort's place in the times and its outcomes."""
    rows = [[-1 if place is None else place, *map(float, row)] for place, row in zip(
        places, outcomes, strict=True
    )]  # fmt: skip
    return json.dumps(sorted(rows)).encode()


EXPECTED = canonical(list(PLACES), OUTCOMES)


def rows(times) -> list[list]:
    """The panel's rows: unit, time, cohort and outcome, as values of Python."""
    return [
        [unit, times[time], None if place is None else times[place], OUTCOMES[number][time]]
        for number, (unit, place) in enumerate(zip(UNITS, PLACES, strict=True))
        for time in range(N_TIMES)
    ]


def steps() -> list[list]:
    return rows(STEPS)


def dates(zone: str | None = None) -> list[list]:
    return rows([DAY.tz_localize(zone) + pd.Timedelta(days=day) for day in range(N_TIMES)])


def csv(table: list[list], header=("unit", "time", "cohort", "outcome")) -> bytes:
    lines = [header, *table]
    shown = [",".join("" if cell is None else str(cell) for cell in line) for line in lines]
    return ("\n".join(shown) + "\n").encode()


def parquet(table: list[list], **types) -> bytes:
    """A Parquet file; `types` are the pyarrow types of columns."""
    columns = dict(
        zip(("unit", "time", "cohort", "outcome"), zip(*table, strict=True), strict=True)
    )
    made = {name: pa.array(values, type=types.get(name)) for name, values in columns.items()}
    file = io.BytesIO()
    pq.write_table(pa.table(made), file)
    return file.getvalue()


# The same content in another notation


def _csv_cells(chance: random.Random, table: list[list]) -> bytes:
    """Another way to write each column's numbers."""
    number = chance.choice([str, lambda n: f"{n}.0", lambda n: f"{n:e}", lambda n: f"+{n}"])
    never = chance.choice(["", "inf", "NaN", "Inf"])
    outcome = chance.choice([repr, lambda n: f"{n:.6f}", lambda n: f"{n:.4e}"])
    return csv(
        [[u, number(t), never if c is None else number(c), outcome(y)] for u, t, c, y in table]
    )


def _csv_layout(chance: random.Random, table: list[list]) -> bytes:
    """Another layout of the file: order, quotes, line ends, a mark at the start, a column more."""
    table = [list(row) for row in table]
    if chance.random() < 0.5:
        chance.shuffle(table)
    order = chance.sample(range(4), 4)
    header = [("unit", "time", "cohort", "outcome")[place] for place in order]
    lines = [[row[place] for place in order] for row in table]
    if chance.random() < 0.5:
        header, lines = [*header, "note"], [[*line, "a note"] for line in lines]
    frame = pd.DataFrame(lines, columns=header, dtype=object)
    quoting = chance.choice([0, 1])
    text = frame.to_csv(index=False, quoting=quoting, lineterminator=chance.choice(["\n", "\r\n"]))
    return chance.choice([b"", b"\xef\xbb\xbf"]) + text.encode()


def _parquet_of_steps(chance: random.Random) -> bytes:
    """Types of whole numbers, of decimals, of categories, and of text."""
    numbers = [pa.int16(), pa.int32(), pa.int64(), pa.uint16(), pa.float32(), pa.float64()]
    numbers += [pa.decimal128(10, 2), pa.string(), pa.large_string()]
    time, cohort = chance.choice(numbers), chance.choice(numbers)
    outcome = chance.choice([pa.float32(), pa.float64(), pa.decimal128(12, 4), pa.string()])
    unit = chance.choice([pa.string(), pa.large_string(), pa.dictionary(pa.int8(), pa.string())])

    def cast(value, kind):
        if value is None or pa.types.is_floating(kind) or pa.types.is_integer(kind):
            return value
        return Decimal(str(value)) if pa.types.is_decimal(kind) else str(value)

    table = [[u, cast(t, time), cast(c, cohort), cast(y, outcome)] for u, t, c, y in steps()]
    return parquet(table, unit=unit, time=time, cohort=cohort, outcome=outcome)


def _parquet_of_dates(chance: random.Random) -> bytes:
    """Times of other units, the cohort's unit another than the time's; with a zone, or as dates."""
    zone = chance.choice([None, None, "UTC", "Europe/Berlin"])
    kinds = [pa.timestamp(unit, tz=zone) for unit in ("s", "ms", "us", "ns")]
    if zone is None:
        kinds += [pa.date32(), pa.date64()]
    return parquet(dates(zone), time=chance.choice(kinds), cohort=chance.choice(kinds))


def _csv_of_dates(chance: random.Random) -> bytes:
    show = chance.choice(["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M"])
    again = chance.choice([show, "%Y-%m-%d"])
    return csv([
        [u, t.strftime(show), None if c is None else c.strftime(again), y] for u, t, c, y in dates()
    ])  # fmt: skip


def _rounded(chance: random.Random) -> bytes:
    """Times that differ by rounding only, as from 0.1 + 0.2."""
    times = [0.1 * (step + 1) for step in range(N_TIMES)]
    table = rows(times)
    for row in table:
        row[1] += chance.choice([0, 1, -1]) * 2e-16 * row[1]
    return csv(table)


NOTATIONS: dict[str, tuple[str, Callable[[random.Random], bytes]]] = {
    "numbers written otherwise": ("csv", lambda chance: _csv_cells(chance, steps())),
    "layout of a CSV file": ("csv", lambda chance: _csv_layout(chance, steps())),
    "types of a Parquet file": ("parquet", _parquet_of_steps),
    "dates in a Parquet file": ("parquet", _parquet_of_dates),
    "dates in a CSV file": ("csv", _csv_of_dates),
    "times equal up to rounding": ("csv", _rounded),
}

PLAIN = ("numbers written otherwise", "layout of a CSV file", "times equal up to rounding")

# Damages


def _of_a_cell(chance: random.Random, table: list[list]) -> tuple[list[str], str]:
    row = chance.randrange(len(table))
    column, values = chance.choice(
        [
            (0, [None]),
            (1, [None, "soon", "inf", "nan", "1,5", "-inf", "1 000"]),
            (2, ["soon", "-inf", "never!", "1;2"]),
            (3, [None, "low", "nan", "inf", "3,5", "1.2.3", "--1"]),
        ]
    )
    value = chance.choice(values)
    if value is not None and "," in value:
        value = f'"{value}"'
    table[row][column] = value
    name = ("unit", "time", "cohort", "outcome")[column]
    return [rf"csv:{row + 2}\b", name], f"{name} {value!r}"


def _of_rows(chance: random.Random, table: list[list]) -> tuple[list[str], str]:
    row = chance.randrange(len(table))
    unit, time, _, _ = table[row]
    what = chance.choice(["twice", "missing", "cohort"])
    if what == "twice":
        table.append(list(table[row]))
        return [rf"csv:{len(table) + 1}\b", re.escape(unit), str(time)], "a row twice"
    if what == "missing":
        del table[row]
        return [re.escape(unit), str(time)], "a row is missing"
    other = 3000 if table[row][2] != 3000 else 1000
    table[row][2] = other
    return [re.escape(unit), str(other)], "another cohort in one row"


def _of_cohorts(chance: random.Random, table: list[list]) -> tuple[list[str], str]:
    what = chance.choice(["none treated", "all treated", "a cohort of one", "text"])
    first = table[0][0]
    for row in table:
        if what == "none treated":
            row[2] = None
        elif what == "all treated":
            row[2] = 1000 if row[2] is None else row[2]
        elif what == "a cohort of one" and row[0] == first:
            row[2] = 3000
        elif what == "text":
            row[2] = "later"
    named = {"none treated": "treated", "all treated": "treated", "text": "later"}
    return [named.get(what, "3000")], what


def _of_a_header(chance: random.Random) -> tuple[bytes, list[str], str]:
    names = ["unit", "time", "cohort", "outcome"]
    place = chance.randrange(4)
    name = names[place]
    what = chance.choice(["misspelt", "missing", "twice"])
    if what == "misspelt":
        names[place] = chance.choice([name + "s", name.upper() + "_", name[:-1]])
        return csv(steps(), names), [name], f"{what}: {names[place]}"
    if what == "missing":
        table = [row[:place] + row[place + 1 :] for row in steps()]
        return csv(table, [n for n in names if n != name]), [name], f"{what}: {name}"
    table = [[*row, row[place]] for row in steps()]
    return csv(table, [*names, name]), [name], f"{what}: {name}"


def _of_times(chance: random.Random) -> tuple[bytes, list[str], str]:
    """Time and cohort that cannot be compared."""
    days = dates()
    what = chance.choice(["numbers and dates", "a zone on one side", "dates and numbers"])
    if what == "a zone on one side":
        zoned = [[u, t, None if c is None else c.tz_localize("UTC"), y] for u, t, c, y in days]
        return parquet(zoned), ["cohort", "zone|UTC"], what
    numbers = {DAY + pd.Timedelta(days=day): STEPS[day] for day in range(N_TIMES)}
    if what == "numbers and dates":
        table = [[u, numbers[t], c, y] for u, t, c, y in days]
    else:
        table = [[u, t, None if c is None else numbers[c], y] for u, t, c, y in days]
    made = parquet(table) if chance.random() < 0.5 else csv(table)
    return made, ["time|cohort"], f"{what}: {'parquet' if made[:4] == b'PAR1' else 'csv'}"


def _of_a_file(chance: random.Random) -> tuple[str, bytes, str]:
    whole = parquet(steps())
    return chance.choice(
        [
            ("panel.csv", b"", "empty"),
            ("panel.csv", b"unit,time,cohort,outcome\n", "a header alone"),
            ("panel.csv", b"\xff\xfe\x00\x01" * 40, "binary"),
            ("panel.csv", csv(steps()).decode().encode("utf-16"), "utf-16"),
            ("panel.csv", whole, "Parquet named CSV"),
            ("panel.csv", b"\0\0\0", "zero bytes"),
            ("panel.csv", csv(steps()) + b'"x,1,2\n', "an open quote"),
            ("panel.csv", csv(steps()) + b"x,1,2,3,4,5,6\n", "a row too long"),
            ("panel.parquet", whole[: chance.randrange(1, len(whole) - 1)], "cut off"),
            ("panel.parquet", csv(steps()), "CSV named Parquet"),
            ("panel.parquet", b"", "empty Parquet"),
            ("panel.tsv", csv(steps()), "another ending"),
            ("panel", csv(steps()), "no ending"),
        ]
    )


def draw(chance: random.Random) -> Mutation:
    """A mutation of the panel: half of them keep the content."""
    if chance.random() < 0.5:
        what = chance.choice(sorted(NOTATIONS))
        ending, make = NOTATIONS[what]
        files, plain = {f"panel.{ending}": make(chance)}, what in PLAIN
        return Mutation(what, files, EXPECTED, ("panel",), must_be_read=plain)
    kind = chance.choice(["cell", "rows", "cohorts", "header", "times", "file"])
    if kind == "file":
        name, content, what = _of_a_file(chance)
        return Mutation(f"file: {what}", {name: content}, None, (re.escape(name),))
    if kind == "header":
        content, named, what = _of_a_header(chance)
        return Mutation(f"header: {what}", {"panel.csv": content}, None, ("panel.csv", *named))
    if kind == "times":
        content, named, what = _of_times(chance)
        ending = "parquet" if content[:4] == b"PAR1" else "csv"
        return Mutation(f"times: {what}", {f"panel.{ending}": content}, None, ("panel", *named))
    table = steps()
    damage = {"cell": _of_a_cell, "rows": _of_rows, "cohorts": _of_cohorts}[kind]
    named, what = damage(chance, table)
    return Mutation(f"{kind}: {what}", {"panel.csv": csv(table)}, None, ("panel.csv", *named))
