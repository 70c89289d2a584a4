"""Files that users bring: what is refused in one line, with the place, before anything is made."""

import json
import tempfile
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.experiments import message
from palimpsest.errors import UserError
from palimpsest.profiles.panel import read_panel
from palimpsest.tables.kinds import NAME, NUMBER, Column, UserKind
from palimpsest.tables.user_tables import read_texts, read_user_table, user_table
from palimpsest.tables.user_values import written_number

KIND = UserKind(
    "score",
    "one row for each name",
    "name",
    (Column("id", NAME, "a name"), Column("score", NUMBER, "a number")),
)
PANEL_UNITS = [("a", 1e6), ("b", 1e6), ("c", ""), ("d", "")]
REFUSED = {
    "nothing": ("a.csv", "", "a.csv:1: has no column 'id'; it has: none; a score has the columns"),
    "a byte order mark alone": ("a.csv", "\ufeff", "a.csv:1: has no column 'id'; it has: none; a"),
    "blank lines alone": ("a.tsv", "\n\n", "a.tsv:1: has no column 'id'; it has: none; a score"),
    "a header alone": ("a.csv", "id,score\n", "a.csv: has no rows; add them: a score has"),
    "a row that is too short": (
        "a.csv",
        "id,score\n\na\n",
        "a.csv:3: has 1 cells, and the header has 2; give every row a cell for each column",
    ),
    "a comma without quotes": ("a.csv", "id,score\na,b,1\n", "a.csv:2: has 3 cells, and the"),
    "a quotation mark without end": (
        "a.csv",
        'id,score\n\nb,1\n"a,1\nc,2\n',
        "a.csv:4: a cell begins with a quotation mark and does not end with one; put one around",
    ),
    "a quotation mark within a cell": (
        "a.tsv",
        'id\tscore\n"Hi" he said\t1\n',
        "a.tsv:2: a cell begins with a quotation mark and does not end with one; put one around",
    ),
    "two rows between two quotation marks": (
        "a.tsv",
        'score\tid\n1\t"Hi he said\n2\tother "\n3\tmore\n',
        "a.tsv:2: a cell that begins with a quotation mark ends on line 3; put one around the",
    ),
    "semicolons": (
        "a.csv",
        "id;score\na;1\n",
        "a.csv:1: its columns are separated by ';'; save it with commas between them",
    ),
    "a column twice": ("a.csv", "id,score,id\na,1,b\n", "a.csv:1: has the column 'id' twice"),
    "bytes that are no text": (
        "a.csv",
        b"id,score\n\xff,1\n",
        "a.csv:2: not UTF-8 text (byte 0xff)",
    ),
    "a decimal comma": ("a.tsv", "id\tscore\na\t0,5\n", "a.tsv:2: score '0,5' is not a finite"),
    "a number that no float can hold": ("a.csv", "id,score\na,1e999\n", "score '1e999' is not a"),
    "an empty cell": ("a.csv", "id,score\na,1\n,2\n", "a.csv:3: id is empty; mend the row"),
    "an empty text": ("a.jsonl", '{"id": "", "score": 1}', "a.jsonl:1: id is empty"),
    "a null": (
        "a.jsonl",
        '{"id": "a", "score": 1}\n\n{"id": null}',
        "a.jsonl:3: id is null or missing",
    ),
    "a field that is gone": (
        "a.json",
        '[{"id": 1, "score": 2}, {"id": 2}]',
        "row 2: score is null or missing",
    ),
    "a field twice": (
        "a.jsonl",
        '{"id": 1, "score": 2, "id": 3}',
        "a.jsonl:1: is not JSON (an object has the field 'id' twice)",
    ),
    "a large number": ("a.json", '[{"id": 1, "score": 1e999}]', "the number 1e999 is too large"),
    "no list": ("a.json", '{"id": {"0": 1}}', "a.json: is no list; write a list of objects"),
    "no object": ("a.json", "[1]", "a.json: row 1: is no JSON object"),
    "a truth value as a name": ("a.jsonl", '{"id": true, "score": 1}', "id True is not a name"),
    "a list as a name": ("a.jsonl", '{"id": [1], "score": 1}', "a.jsonl:1: id [1] is not a name"),
    "another format": ("a.xlsx", "", "a.xlsx: a score cannot be read from .xlsx; save it as .csv,"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_file_is_refused_in_one_line(tmp_path, what):
    name, content, expected = REFUSED[what]
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())

    def read():
        table = read_user_table(path, KIND)
        table.names("id")
        table.numbers("score")

    assert expected in message(read)


PANEL = "unit,time,cohort,outcome\n" + "".join(
    f"{unit},{time},{cohort},{time}.5\n"
    for unit, cohort in (("a", 1), ("b", 1), ("c", ""), ("d", ""))
    for time in (0, 1)
)
FILES = {
    "a.csv": PANEL,
    "a.tsv": PANEL.replace(",", "\t"),
    "a.jsonl": "".join(
        json.dumps({"unit": u, "time": t, "cohort": None if u > "b" else 1, "outcome": t}) + "\n"
        for u in "abcd"
        for t in (0, 1)
    ),
}
PIECES = [
    "",
    ",",
    "\n",
    '"',
    "null",
    "\0",
    "1e999",
    "{",
    "]",
    "2024-01-01",
    "NA",
    "\r",
    "true",
    "-",
]
PIECES += ["\ufeff", "\\ud800", "[1]", "9" * 30, "\u0661", "nan", "inf", "\t", "a"]


@settings(max_examples=150, deadline=None, derandomize=True)
@given(name=st.sampled_from(sorted(FILES)), data=st.data())
def test_a_file_with_slips_is_read_or_refused_in_one_line(name, data):
    """No slip of a few characters ends in anything but a panel or a `UserError`."""
    text = FILES[name]
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text)))
        n = data.draw(st.integers(0, 3))
        text = text[:place] + data.draw(st.sampled_from(PIECES)) + text[place + n :]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(text)
        said, panel = str(path), None
        try:
            panel = read_panel(path)
        except UserError as error:
            said = str(error)
    assert said.startswith(str(path))
    if panel is not None:
        assert np.isfinite(panel.outcome).all()
        assert np.isfinite(panel.times).all()


def test_names_and_numbers_are_as_written(tmp_path):
    """A byte order mark, blank lines, line ends of any system and quotes change nothing."""
    names = ["01", "1", "1e5", "NA", "null", "x,y", 'a "b"', "two\nlines", " "]
    quoted = [name.replace('"', '""') for name in names]
    lines = [f'"{name}",{number}' for number, name in enumerate(quoted)]
    path = tmp_path / "a.CSV"
    path.write_bytes(("\ufeffid,score\r\n\r\n" + "\r\n".join(lines)).encode())
    table = read_user_table(path, KIND)
    found = table.names("id")
    assert [found.values[place] for place in found.places] == names
    assert table.numbers("score").tolist() == list(range(len(names)))


@pytest.mark.parametrize("name", ["a.json", "a.jsonl"])
def test_numbers_that_are_names_are_as_written(tmp_path, name):
    """The same numbers are numbers in a column of numbers."""
    numbers = ["1.1", "1.10", "1e5", "100000.0", "100000", "-0", "0", "0.12345678901234567890"]
    numbers += ["0.12345678901234567891", "123456789012345678901", "1.0"]
    rows = [f'{{"id": {number}, "score": {number}}}' for number in numbers]
    path = tmp_path / name
    path.write_text(f"[{','.join(rows)}]" if name == "a.json" else "\n".join(rows))
    table = read_user_table(path, KIND)
    found = table.names("id")
    assert [found.values[place] for place in found.places] == numbers
    assert [table.value("id", row) for row in range(len(numbers))] == numbers
    assert table.numbers("score").tolist() == list(map(float, numbers))


def test_decimals_that_are_names_are_as_written():
    frame = pd.DataFrame({"id": [Decimal("1.10"), Decimal("1.1")], "score": [1, 2]})
    assert user_table(frame, KIND, "scores").names("id").values == ["1.10", "1.1"]


def test_numbers_are_read_to_the_last_bit(tmp_path):
    """As text and as JSON, with signs, blanks and exponents."""
    numbers = np.random.default_rng(0).normal(size=500) * 10.0 ** np.arange(-250, 250)
    path = tmp_path / "a.csv"
    rows = "".join(f"a, +{abs(n)!r} \nb,{n!r}\n" for n in numbers.tolist())
    path.write_text(f"id,score\n{rows}")
    found = read_user_table(path, KIND).numbers("score")
    np.testing.assert_array_equal(found[::2], np.abs(numbers))
    np.testing.assert_array_equal(found[1::2], numbers)
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(json.dumps({"id": 1, "score": n}) for n in numbers.tolist()))
    np.testing.assert_array_equal(read_user_table(path, KIND).numbers("score"), numbers)


def test_numbers_are_written_with_all_of_their_digits():
    assert [written_number(n) for n in (1234567.0, 0.1 + 0.2, -3.0, 1e300, np.inf)] == [
        "1234567",
        "0.30000000000000004",
        "-3",
        "1e+300",
        "inf",
    ]


@pytest.mark.parametrize("times", [[1.7e9 + 0.001, 1.7e9 + 0.002], [1e-9, 2e-9, 1000000.5]])
def test_times_that_differ_by_more_than_rounding_are_different(tmp_path, times):
    rows = [f"{unit},{time!r},{cohort},1" for unit, cohort in PANEL_UNITS for time in times]
    path = tmp_path / "panel.csv"
    path.write_text("\n".join(["unit,time,cohort,outcome", *rows]))
    assert read_panel(path).times.tolist() == times


def test_a_date_for_which_there_is_no_value_is_one_line(tmp_path):
    path = tmp_path / "panel.parquet"
    table = {
        "unit": ["a", "b"],
        "outcome": [1.0, 2.0],
        "cohort": pa.array([None, None], pa.int64()),
    }
    dates = pa.array([0, 2**50], pa.timestamp("s"))
    pq.write_table(pa.table({**table, "time": dates}), path)
    said = message(lambda: read_panel(path))
    assert "row 2: time is a date outside of the years 1 to 9999; mend the row" in said


@pytest.mark.parametrize("form", ["string", "large_string", "string_view", "dictionary"])
@pytest.mark.parametrize("size", [2, 5000])
def test_a_text_that_is_not_utf8_is_named_with_its_row(tmp_path, form, size):
    """Also in a later part of the file, as a text and as a name."""
    path = tmp_path / "a.parquet"
    kind = {"large_string": pa.large_binary(), "string_view": pa.binary_view()}
    cells = pa.array([b"a"] * (size - 1) + [b"a\xff"], kind.get(form, pa.binary()))
    cells = cells.view(pa.string() if form == "dictionary" else getattr(pa, form)())
    cells = cells.dictionary_encode() if form == "dictionary" else cells
    pq.write_table(pa.table({"id": cells, "score": range(size)}), path)
    said = f"{path}: row {size}: 'id' is not UTF-8 text (byte 0xff); save the table again, with "
    assert message(lambda: read_user_table(path, KIND)).startswith(said)
    assert message(lambda: list(read_texts(path, KIND, "id"))).startswith(said)


def test_a_time_zone_that_nobody_knows_is_named(tmp_path):
    path = tmp_path / "panel.parquet"
    times = pa.array([0, 1], pa.timestamp("us", "Mars/X"))
    table = {"unit": ["a", "b"], "outcome": [1.0, 2.0], "cohort": times, "time": times}
    pq.write_table(pa.table(table), path)
    said = message(lambda: read_panel(path))
    assert said == (
        f"{path}: column 'time' has the time zone 'Mars/X', which is not known here; save it in UTC"
    )
    said = message(lambda: list(read_texts(path, replace(KIND, columns=KIND.columns[:1]), "time")))
    assert said == f"{path}: column 'time' is of the type timestamp[us, tz=Mars/X]; save it as text"


@pytest.mark.parametrize("read", [read_panel, lambda path, own: read_user_table(path, KIND, own)])
def test_a_column_that_nobody_has_is_named(tmp_path, read):
    path = tmp_path / "a.csv"
    path.write_text(f"{PANEL.splitlines()[0]},id,score\n")
    said = message(lambda: read(path, {"ud": "id"}))
    assert f"{path}:1: columns: a " in said
    assert "has no column 'ud'" in said
    assert "; choose from " in said
