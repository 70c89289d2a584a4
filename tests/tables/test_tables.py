"""Tables: what is written is read back, and whatever is not whole is refused in one line."""

import os
import re
import stat
from importlib import import_module

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from palimpsest import tables
from palimpsest.datasets import kinds as datasets
from palimpsest.errors import UserError
from palimpsest.planning import kinds as planning
from palimpsest.sections import KINDS, NAMES
from palimpsest.tables import Column, Glossary, claims
from palimpsest.tables.columns import SHARED


def generated(kind, n=5, seed=0):
    """A frame of a kind with random cells, nulls wherever they are allowed."""
    chance = np.random.default_rng(seed)
    frame = {}
    for field in KINDS[kind].schema:
        if pa.types.is_string(field.type):
            cells = pd.array([f"{field.name} ü {i}" for i in range(n)], dtype="string")
        elif pa.types.is_integer(field.type):
            cells = pd.array(chance.integers(-(2**53), 2**53, n), dtype="Int64")
        elif pa.types.is_floating(field.type):
            cells = pd.array(chance.normal(size=n) * 10.0 ** chance.integers(-300, 300, n))
        elif pa.types.is_list(field.type):
            cells = list(chance.normal(size=(n, 3)).astype(np.float32))
        else:
            # A column of pandas with true, false and nothing holds objects.
            cells = pd.Series(chance.random(n) < 0.5, dtype=object if field.nullable else bool)
        if field.nullable:
            is_of_objects = cells.dtype == object
            cells[1] = None if is_of_objects else np.nan if cells.dtype == "float64" else pd.NA
        frame[field.name] = cells
    return pd.DataFrame(frame)


def one_line(error, *parts):
    """The message of an error, which is one line and has all the parts."""
    message = str(error.value)
    assert "\n" not in message
    for part in parts:
        assert part in message, message
    return message


@pytest.fixture
def trace(tmp_path):
    """A file with a table of kind `trace`."""
    path = tmp_path / "results" / "trace.parquet"
    tables.write(path, generated("trace"), KINDS["trace"])
    return path


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_read_back_as_it_was_written(kind, tmp_path):
    """Values, their order and their nulls survive; columns come in the order of the kind."""
    frame = generated(kind)
    path = tmp_path / f"{kind}.parquet"
    tables.write(path, frame[frame.columns[::-1]], KINDS[kind])
    back = tables.read(path, KINDS[kind])
    assert list(back.columns) == KINDS[kind].schema.names
    pd.testing.assert_frame_equal(back, frame, check_dtype=False, check_exact=True)
    assert pq.read_schema(path).metadata[b"palimpsest_table"].decode() == kind
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == "ZSTD"


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_says_what_it_means(kind):
    """The contract has a sentence for every kind and column, and lists no column twice."""
    described = KINDS[kind]
    names = [column.name for column in described.columns]
    assert len(names) == len(set(names))
    assert described.rows.endswith(".")
    assert described.path.endswith(".parquet")
    assert all(column.meaning for column in described.columns)


GLOSSARIES = {
    "shared": SHARED,
    "claims": claims.columns,
    "datasets": datasets.columns,
    "planning": planning.columns,
    **{name: import_module(f"palimpsest.{name}.kinds").columns for name in NAMES},
}


@pytest.mark.parametrize("name", GLOSSARIES)
def test_a_glossary_has_only_columns_of_tables(name):
    """A column that left the tables leaves the glossary, too."""
    listed = {column.name for kind in KINDS.values() for column in kind.columns}
    assert GLOSSARIES[name].keys() <= listed


def test_a_declaration_is_read_as_it_is_written():
    """A sentence may go on in the next lines, and a question mark is for a null."""
    words = Glossary("first int: one: and\n    only, nats\n\nsecond float?: another")
    assert words("second first") == (
        Column("second", "float", "another", nullable=True),
        Column("first", "int", "one: and only, nats"),
    )
    more = words.extended("third bool: whether")
    assert [column.nullable for column in more("first? third")] == [True, False]
    assert more("third first", first="str: a name")[1] == Column("first", "str", "a name")
    assert words("fourth", fourth="vector: of length 1")[0].arrow_type == pa.list_(pa.float32())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda: SHARED("model sede"), "'sede' is in no glossary (did you mean 'seed'?)"),
        (lambda: SHARED("model seed model?"), "'model' is listed twice"),
        (lambda: SHARED("model", seed="int: a seed"), "'seed' is declared, but not listed"),
        (lambda: SHARED("model", model="a name"), "'model a name' does not declare a column"),
        (lambda: SHARED.extended("seed int: another"), "'seed' is declared twice"),
        (lambda: Glossary("seed integer: a seed"), "write 'name type: sentence'"),
    ],
)
def test_a_kind_with_a_wrong_column_is_one_clear_error(wrong, message):
    """A wrong list is found when the kind is imported."""
    with pytest.raises(ValueError, match=re.escape(message)):
        wrong()


def test_an_empty_table_is_a_table(tmp_path):
    """No rows is not an error: columns and types are kept."""
    empty = tables.read_all([], KINDS["starts"])
    tables.write(tmp_path / "empty.parquet", empty, KINDS["starts"])
    back = tables.read(tmp_path / "empty.parquet", KINDS["starts"])
    assert len(back) == 0
    assert list(back.columns) == KINDS["starts"].schema.names


def test_tables_are_stacked_in_the_order_given(tmp_path):
    """`read_all` keeps files, and rows in them, in order, with one running index."""
    paths = [tmp_path / "b.parquet", tmp_path / "a.parquet"]
    for seed, path in enumerate(paths):
        tables.write(path, generated("trace", seed=seed), KINDS["trace"])
    stacked = tables.read_all(paths, KINDS["trace"])
    expected = pd.concat([generated("trace", seed=0), generated("trace", seed=1)])
    np.testing.assert_array_equal(stacked["nll"], expected["nll"])
    assert list(stacked.index) == list(range(10))


@pytest.mark.parametrize("kept", [1, 4, 100, 0.5, -1, -8])
def test_a_truncated_file_is_named_with_its_remedy(trace, kept):
    """Wherever a Parquet file was cut, reading it is one line that says what to do."""
    content = trace.read_bytes()
    trace.write_bytes(content[: int(len(content) * kept) if kept == 0.5 else kept])
    with pytest.raises(UserError) as error:
        tables.read(trace, KINDS["trace"])
    size = f"({trace.stat().st_size:,} bytes"
    one_line(
        error, f"{trace}: not a complete Parquet file {size}", f"rerun: snakemake --cores 1 {trace}"
    )


def test_damage_in_the_middle_is_named(tmp_path):
    """Zeros where the columns' pages were do not pass for data."""
    path = tmp_path / "trace.parquet"
    tables.write(path, generated("trace", n=4000), KINDS["trace"])
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = bytes(len(content) // 2 - 4)
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        tables.read(path, KINDS["trace"])
    one_line(error, f"{path}: not a complete Parquet file", f"rerun: snakemake --cores 1 {path}")


def test_an_empty_file_and_a_text_are_no_tables(trace):
    """An empty file and a text file are both refused by name."""
    for content in ("", "model,epoch\npythia,1\n"):
        trace.write_text(content)
        with pytest.raises(UserError) as error:
            tables.read(trace, KINDS["trace"])
        one_line(error, f"{trace}: not a complete Parquet file", "delete it and rerun: snakemake")


def test_a_missing_file_says_how_to_make_it(tmp_path):
    """The remedy for a missing table is the command that makes it."""
    path = tmp_path / "gone.parquet"
    with pytest.raises(UserError) as error:
        tables.read(path, KINDS["trace"])
    assert one_line(error) == f"{path}: no such table; make it with: snakemake --cores 1 {path}"


def test_a_folder_is_no_table(tmp_path):
    """A folder where the table should be is refused by name, not searched for tables."""
    (tmp_path / "trace.parquet").mkdir()
    with pytest.raises(UserError) as error:
        tables.read(tmp_path / "trace.parquet", KINDS["trace"])
    one_line(error, str(tmp_path / "trace.parquet"))


def test_a_table_of_another_kind_is_refused(trace):
    """The message names both the missing columns and the unknown ones."""
    with pytest.raises(UserError) as error:
        tables.read(trace, KINDS["strings"])
    one_line(error, f"{trace}: not a strings table: it lacks text", "has unknown model, epoch, nll")


def test_a_column_of_another_type_is_refused(trace):
    """A table that another tool wrote with a text where a number belongs is not passed on."""
    table = pq.read_table(trace)
    place = table.schema.names.index("epoch")
    pq.write_table(table.set_column(place, "epoch", pa.array(["one"] * len(table))), trace)
    with pytest.raises(UserError) as error:
        tables.read(trace, KINDS["trace"])
    one_line(
        error,
        f"{trace}: column 'epoch' is string, must be int64",
        f"rerun: snakemake --cores 1 {trace}",
    )


@pytest.mark.parametrize("column", ["string_id", "epoch", "nll"])
def test_a_null_is_refused_where_none_is_allowed(tmp_path, column):
    """Texts, integers and floats alike; nothing is left on the disk."""
    frame = generated("trace")
    frame[column] = frame[column].astype(object)
    frame.loc[3, column] = None
    with pytest.raises(UserError) as error:
        tables.write(tmp_path / "trace.parquet", frame, KINDS["trace"])
    one_line(error, f"{tmp_path / 'trace.parquet'}: column {column!r} of a trace table must not be")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("change", [{"nll": None}, {"loss": 1.0}])
def test_a_frame_with_other_columns_is_not_written(tmp_path, change):
    """A column too few or too many is a defect that must not reach the disk."""
    frame = generated("trace").assign(**change)
    frame = frame.drop(columns=[name for name, value in change.items() if value is None])
    with pytest.raises(UserError, match="not a trace table"):
        tables.write(tmp_path / "trace.parquet", frame, KINDS["trace"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("failure", [OSError(28, "No space left on device"), RuntimeError("no")])
def test_a_failed_write_leaves_the_old_file_whole(trace, monkeypatch, failure):
    """After a failed write, readers see the old table, and no temporary file is left."""
    before = trace.read_bytes()

    def half_written(writer, table):
        with open(writer.where, "wb") as file:
            file.write(b"PAR1 half")
        raise failure

    monkeypatch.setattr(pq.ParquetWriter, "write_table", half_written)
    expected = UserError if isinstance(failure, OSError) else RuntimeError
    with pytest.raises(expected) as error:
        tables.write(trace, generated("trace", seed=1), KINDS["trace"])
    if expected is UserError:
        assert f"{trace}: cannot be written: No space left on device; make" in one_line(error)
    assert trace.read_bytes() == before
    assert list(trace.parent.iterdir()) == [trace]


@pytest.mark.parametrize("mask", [0o022, 0o077, 0o002])
def test_the_file_mode_follows_the_umask(tmp_path, mask):
    """A table is as readable as any file that the user makes, not as private as a temporary one."""
    before = os.umask(mask)
    try:
        tables.write(tmp_path / "trace.parquet", generated("trace"), KINDS["trace"])
        tables.write_json(tmp_path / "manifest.json", {"a": 1})
        assert os.umask(mask) == mask
    finally:
        os.umask(before)
    for path in tmp_path.iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o666 & ~mask


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_named(tmp_path):
    """No right to write is one line that names the file."""
    tmp_path.chmod(0o555)
    try:
        with pytest.raises(UserError) as error:
            tables.write(tmp_path / "trace.parquet", generated("trace"), KINDS["trace"])
    finally:
        tmp_path.chmod(0o755)
    one_line(error, f"{tmp_path / 'trace.parquet'}: cannot be written: Permission denied")


def test_a_file_where_a_folder_should_be_is_named(tmp_path):
    """A path that cannot exist is one line that names it."""
    (tmp_path / "results").write_text("not a folder")
    path = tmp_path / "results" / "trace.parquet"
    with pytest.raises(UserError) as error:
        tables.write(path, generated("trace"), KINDS["trace"])
    one_line(error, f"{path}: cannot be written:")


def test_json_keeps_the_order_and_the_letters(tmp_path):
    """A JSON file reads as given: keys in order, letters as letters, a newline at the end."""
    tables.write_json(tmp_path / "a.json", {"z": "naïve", "a": [1, None]})
    text = (tmp_path / "a.json").read_text()
    assert text.index('"z"') < text.index('"a"')
    assert "naïve" in text
    assert text.endswith("}\n")
