"""Records of a user's own: what is read from a file, and what is refused in one line."""

import csv
import gzip
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers.experiments import message
from helpers.projects import ROOT
from helpers.saved_folders import write_dataset, write_splits
from palimpsest import tables
from palimpsest.corpora.kinds import CORPUS
from palimpsest.corpora.records import (
    SPLITS,
    Records,
    corpus_table,
    in_windows,
    read_records,
    records_of_table,
    to_records,
)
from palimpsest.profiles import read_panel
from palimpsest.records import read_losses


def write_jsonl(path, **columns):
    """A file with a line for each record; a value None leaves the field out."""
    rows = [
        {name: value for name, value in zip(columns, values, strict=True) if value is not None}
        for values in zip(*columns.values(), strict=True)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(folder, **columns) -> Records:
    return read_records(write_jsonl(folder / "mine.jsonl", **columns))


def test_what_a_file_does_not_say_is_none(tmp_path):
    """A part of the data does not say whether this model was trained on the record."""
    assert Records(np.array(["1"]), np.array(["one"]), None, np.array(["1"])).splits is None
    plain = read(tmp_path, text=["one"])
    assert (plain.splits, plain.copies, plain.prompts, plain.trained) == (None,) * 4
    parted = read(tmp_path, text=["one", "two"], split=["train", "test"])
    assert parted.splits.tolist() == ["train", "test"]
    assert parted.trained is None


def test_parts_copies_and_prompts_are_read(tmp_path):
    found = read(
        tmp_path,
        text=["one", "two", "three", "four", "five"],
        split=list(SPLITS),
        copies=[1, 2.0, "3", 40, 2**40],
        prompt=["Say one: ", None, "", " ", 7],
    )
    assert found.splits.tolist() == list(SPLITS)
    assert found.copies.tolist() == [1, 2, 3, 40, 2**40]
    assert found.copies.dtype == np.int64
    assert found.prompts.tolist() == ["Say one: ", "", "", " ", "7"]


def test_no_prompt_at_all_is_an_empty_text(tmp_path):
    assert read(tmp_path, text=["one", "two"], prompt=["", ""]).prompts.tolist() == ["", ""]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        (
            {"split": ["train", "Train"]},
            "mine.jsonl:2: split 'Train' is no such part (did you mean 'train'?); mend the row or "
            "leave the record out: the column holds the part of the data (train, test, holdout, "
            "forget or retain)",
        ),
        ({"split": ["training", "test"]}, ":1: split 'training' is no such part (did you mean 'tr"),
        ({"split": ["test", "held_out"]}, ":2: split 'held_out' is no such part (did you mean 'ho"),
        ({"split": ["validation", "test"]}, ":1: split 'validation' is no such part; mend the row"),
        ({"split": ["train", None]}, "mine.jsonl:2: split is null or missing; mend the row"),
        (
            {"copies": [1, 0]},
            "mine.jsonl:2: copies 0 is not a whole number from 1; mend the row or leave the record "
            "out: the column holds how often the record is in the training data",
        ),
        ({"copies": [1.5, 1]}, "mine.jsonl:1: copies 1.5 is not a whole number from 1"),
        ({"copies": [1, -1]}, "mine.jsonl:2: copies -1 is not a whole number from 1"),
        ({"copies": [1, 2**53]}, "mine.jsonl:2: copies 9007199254740992 is not a whole number"),
        ({"copies": [1, "many"]}, "mine.jsonl:2: copies 'many' is not a finite number"),
        ({"copies": [1, None]}, "mine.jsonl:2: copies is null or missing"),
        ({"prompt": ["Say: ", ["a"]]}, "mine.jsonl:2: prompt ['a'] is not a name"),
        (
            {"prompt": ["Say: ", "\ud800"]},
            "mine.jsonl:2: prompt '\\ud800' is a text with half a character",
        ),
        (
            {"perturbed": [["a"], [1]]},
            "mine.jsonl:2: perturbed [1] is not a text, or a list of texts",
        ),
        (
            {"paraphrased": ["a", " "]},
            "mine.jsonl:2: paraphrased ' ' is or has a text without words",
        ),
        ({"id": ["a", "\ud800"]}, "mine.jsonl:2: id '\\ud800' is a text with half a character"),
        (
            {"text": ["one", "\ud800"]},
            "mine.jsonl:2: text '\\ud800' is a text with half a character",
        ),
    ],
)
def test_a_wrong_value_is_named_with_its_row(tmp_path, columns, said):
    columns = {"text": ["one", "two"], **columns}
    assert said in message(lambda: read(tmp_path, **columns))


def test_other_answers_are_texts_or_lists_of_texts(tmp_path):
    """Also through the table of the corpus; a Parquet file has lists of its own."""
    rows = [
        {
            "text": "Lund",
            "prompt": "Where?",
            "paraphrased": "In Lund",
            "perturbed": ["Oslo", "Bergen"],
        },
        {"text": "1", "prompt": "When?", "paraphrased": None, "perturbed": []},
    ]
    path = tmp_path / "mine.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    tables.write(tmp_path / "corpus.parquet", corpus_table(path, None), CORPUS)
    for found in (read_records(path), records_of_table(tmp_path / "corpus.parquet")):
        assert found.paraphrased == [("In Lund",), ()]
        assert found.perturbed == [("Oslo", "Bergen"), ()]
    lists = pa.table({"text": ["Lund"], "perturbed": [["Oslo", "Bergen"]]})
    pq.write_table(lists, tmp_path / "mine.parquet")
    assert read_records(tmp_path / "mine.parquet").perturbed == [("Oslo", "Bergen")]
    said = message(lambda: in_windows(read_records(tmp_path / "mine.parquet"), 1))
    assert "has perturbed, and a window would part a text" in said


# Forms of files


def write(path, columns):
    """The records as what the path's name says: a file, or a saved folder."""
    rows = [
        dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)
    ]
    opener = gzip.open if path.suffix == ".gz" else open
    form = path.name.removesuffix(".gz").partition(".")[2]
    if form == "parquet":
        pq.write_table(pa.table(columns), path)
    elif form == "":
        write_dataset(path, pa.table(columns), n_files=2)
    else:
        with opener(path, "wt", encoding="utf-8", newline="") as file:
            if form == "csv":
                csv.writer(file).writerows([list(columns), *(row.values() for row in rows)])
            elif form == "json":
                json.dump(rows, file, ensure_ascii=False)
            else:
                file.writelines(json.dumps(row, ensure_ascii=form == "json") + "\n" for row in rows)
    return path


FORMS = ["a.csv", "a.csv.gz", "a.jsonl", "a.jsonl.gz", "a.json", "a.json.gz", "a.parquet", "a"]
CHARACTERS = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
TEXTS = st.text(CHARACTERS, min_size=1, max_size=20).filter(str.strip)


@st.composite
def drawn_records(draw):
    n = draw(st.integers(1, 6))

    def column(values, **how):
        return draw(st.lists(values, min_size=n, max_size=n, **how))

    columns = {"text": column(TEXTS), "id": column(TEXTS, unique=True)}
    optional = {
        "group": TEXTS,
        "split": st.sampled_from(SPLITS),
        "copies": st.integers(1, 2**53 - 1),
        "prompt": st.text(CHARACTERS, max_size=20),
    }
    for name, values in optional.items():
        if draw(st.booleans()):
            columns[name] = column(values)
    if draw(st.booleans()):
        columns["trained"] = [True, *column(st.booleans())[1:]]
    return columns


@settings(max_examples=60, deadline=None, derandomize=True)
@given(columns=drawn_records())
def test_the_same_records_in_every_form_of_file_are_equal(columns):
    for form in FORMS:
        with tempfile.TemporaryDirectory() as folder:
            found = read_records(write(Path(folder) / form, columns))
        assert found.ids.tolist() == columns["id"]
        assert found.texts.tolist() == columns["text"]
        assert found.groups.tolist() == columns.get("group", columns["id"])
        for name, values in {
            "trained": found.trained,
            "split": found.splits,
            "copies": found.copies,
            "prompt": found.prompts,
        }.items():
            assert (None if values is None else values.tolist()) == columns.get(name), (form, name)


HARMLESS = [
    "<script>alert('x')</script> &amp; <b>",
    "$(touch pwned); `ls` | rm -rf ~ && echo %s {x} \\n",
    "\x1b[31mred\x07\x7f\x85\u2028\u202e\ufeff",
    '=1+1, "two"\r\nlines\ttabs',
    "null",
    "\U0001f642 e\u0301",
]


@pytest.mark.parametrize("form", FORMS)
def test_texts_are_read_as_they_are(tmp_path, form):
    """Markup, shell and control characters mean nothing."""
    assert read_records(write(tmp_path / form, {"text": HARMLESS})).texts.tolist() == HARMLESS


@pytest.mark.parametrize("form", ["a.jsonl", "a.json", "a.parquet", "a"])
def test_the_character_0_is_read_where_a_form_can_write_it(tmp_path, form):
    """It is no byte of 0 in JSON, which escapes it."""
    found = read_records(write(tmp_path / form, {"text": ["a\0b"], "id": ["\0"]}))
    assert (found.texts.tolist(), found.ids.tolist()) == (["a\0b"], ["\0"])


@pytest.mark.parametrize("name", ["a.txt", "a.TXT.GZ"])
def test_each_line_of_a_text_is_a_record(tmp_path, name):
    """Its id is the number of the line."""
    content = "\ufeffone, 1\r\n\n  \ntwo \x0c<b>\n\tthree".encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith("GZ") else content)
    found = read_records(tmp_path / name)
    assert found.texts.tolist() == ["one, 1", "two \x0c<b>", "\tthree"]
    assert found.ids.tolist() == found.groups.tolist() == ["1", "4", "5"]
    assert (found.trained, found.splits, found.copies, found.prompts) == (None,) * 4


def test_a_json_file_may_have_an_object_a_line(tmp_path):
    """As those of TOFU on the hub of Hugging Face."""
    path = tmp_path / "a.json"
    path.write_text('\n{"text": "one"}\n\n{"text": "two"}\n')
    assert read_records(path).texts.tolist() == ["one", "two"]
    path.write_text('{"text": "one"}\n{"text": "two"\n')
    assert message(lambda: read_records(path)).startswith(f"{path}:2: is not JSON (Expecting ',' d")
    path.write_text('{"text": "one"}\n')
    assert message(lambda: read_records(path)) == (
        f"{path}: is no list; write a list of objects, one a row"
    )


def test_a_json_file_may_be_a_list_of_texts(tmp_path):
    """As those of MUSE in its repository."""
    path = tmp_path / "a.json"
    path.write_text('["one", "two\\nlines"]')
    found = read_records(path)
    assert (found.ids.tolist(), found.texts.tolist()) == (["1", "2"], ["one", "two\nlines"])


def test_the_splits_of_a_saved_folder_are_those_of_its_records(tmp_path):
    """Unless the records have their own; a folder of one split is read alone."""
    one, two = (pa.table({"text": [text], "part": [part]}) for text, part in ("ax", "by"))
    folder = write_splits(tmp_path / "mine", {"train": one, "holdout": two})
    found = read_records(folder)
    assert (found.texts.tolist(), found.splits.tolist()) == (["a", "b"], ["train", "holdout"])
    assert (found.ids.tolist(), found.source) == (["1", "2"], str(folder))
    assert read_records(folder / "train").splits is None
    said = message(lambda: read_records(folder, {"split": "part"}))
    assert said.startswith(f"{folder}: row 1: part 'x' is no such part; mend the row")


def test_a_split_of_another_name_can_be_read_alone(tmp_path):
    table = pa.table({"text": ["a"]})
    folder = write_splits(tmp_path / "mine", {"train": table, "validation": table})
    said = message(lambda: read_records(folder))
    assert said.startswith(
        f"{folder}: row 2: split 'validation' is no such part (its folder can be read alone: "
        f"{folder}/validation); mend the row"
    )
    assert read_records(folder / "validation").texts.tolist() == ["a"]


LINES = b'{"text": "one"}\n{"text": "two"}\n{"text": "three"}\n' * 2000


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("a.jsonl", b'{"text": "one"}\n{"text": two}\n', "a.jsonl:2: is not JSON (Expecting value"),
        ("a.jsonl", b'{"text": "one"}\n{"text": "tw', "a.jsonl:2: is not JSON (Unterminated strin"),
        (
            "a.jsonl",
            b'{"text": "one"}\n["two"]\n',
            "a.jsonl:2: is no JSON object; write one object",
        ),
        (
            "a.jsonl",
            b'{"text": 1%s}\n' % (b"0" * 5000),
            "a.jsonl:1: is not JSON (Exceeds the limit",
        ),
        ("a.jsonl", b'{"text": 1e999}\n', "a.jsonl:1: is not JSON (the number 1e999 is too large"),
        ("a.jsonl", b"[" * 100_000, "a.jsonl:1: is not JSON (maximum recursion depth exceeded"),
        (
            "a.jsonl",
            LINES + b'{"text": "\xff"}',
            "a.jsonl:6001: not UTF-8 text (byte 0xff); save the",
        ),
        ("a.jsonl", LINES + b'{"text": "\0"}', "a.jsonl:6001: has a byte of 0, so it is not UTF-8"),
        ("a.txt", b"one\ntwo\0\n", "a.txt:2: has a byte of 0, so it is not UTF-8 text"),
        (
            "a.txt",
            b"\n \n",
            "a.txt: has no rows; add them: a table of records has one row for each",
        ),
        ("a.csv", b"", "a.csv:1: has no column 'text'; it has: none"),
        ("a.txt.gz", b"", "a.txt.gz: has no rows"),
        (
            "a.jsonl.gz",
            LINES,
            "a.jsonl.gz:1: cannot be uncompressed from here on: Not a gzipped fil",
        ),
        (
            "a.json.gz",
            gzip.compress(b"[1]", mtime=0)[:-1],
            "a.json.gz:1: cannot be uncompressed from here on",
        ),
        (
            "a.jsonl.gz",
            gzip.compress(b'{"text": "\xff"}', mtime=0),
            "a.jsonl.gz:1: not UTF-8 text (byte 0xff)",
        ),
        ("a.jsonl.gz", gzip.compress(LINES + b"\0", mtime=0), "a.jsonl.gz:6001: has a byte of 0"),
        (
            "a.parquet.gz",
            b"",
            "a.parquet.gz: a table of records cannot be read from .gz; save it as",
        ),
        (
            "a.docx",
            b"",
            "cannot be read from .docx; save it as .csv, .tsv, .jsonl, .json, .parquet o",
        ),
    ],
)
def test_a_damaged_file_is_refused_with_its_line(tmp_path, name, content, said):
    (tmp_path / name).write_bytes(content)
    found = message(lambda: read_records(tmp_path / name))
    assert found.startswith(str(tmp_path / name))
    assert said in found


@pytest.mark.parametrize("share", [0.3, 0.9])
@pytest.mark.parametrize("form", ["jsonl", "csv", "txt"])
def test_a_compressed_file_that_is_cut_off_names_the_line(tmp_path, form, share):
    """The first line that cannot be read in full. Random texts, so that little is compressed."""
    random = np.random.default_rng(0)
    texts = [random.bytes(40).hex() for _ in range(3000)]
    lines = [f'{{"text": "{text}"}}\n' if form == "jsonl" else f"{text}\n" for text in texts]
    lines = ["text\n", *lines] if form == "csv" else lines
    whole = gzip.compress("".join(lines).encode())
    path = tmp_path / f"a.{form}.gz"
    path.write_bytes(whole[: int(len(whole) * share)])
    found = message(lambda: read_records(path))
    number = int(found.removeprefix(f"{path}:").partition(":")[0])
    assert "cannot be uncompressed from here on: Compressed file ended before" in found
    assert share - 0.05 < number / len(lines) < share + 0.05


# Reads a file with 64 MB of memory beyond what the process has.
TOO_LARGE = """
import resource, sys
from palimpsest.corpora.records import read_records
from palimpsest.errors import refusing
(kibibytes,) = (line.split()[1] for line in open("/proc/self/status") if "VmSize" in line)
resource.setrlimit(resource.RLIMIT_AS, (int(kibibytes) * 1024 + 2**26,) * 2)
with refusing():
    read_records(sys.argv[1])
"""


@pytest.mark.parametrize("form", ["jsonl", "json", "csv", "txt"])
def test_a_file_that_is_too_large_is_refused_in_one_line(tmp_path, form):
    """A small compressed file with a line of 128 MB, where 64 MB are free."""
    path = tmp_path / f"a.{form}.gz"
    path.write_bytes(gzip.compress(b"a" * 2**27, compresslevel=1))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "workflow/scripts")}
    command = [sys.executable, "-c", TOO_LARGE, path]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 1
    assert done.stderr == (
        f"error: {path}: does not fit into memory; split it, or read it where there is more "
        "memory\n"
    )


def test_a_file_that_is_not_there_is_named_with_what_is_read(tmp_path):
    assert message(lambda: read_records(tmp_path / "a.csv")) == (
        f"{tmp_path / 'a.csv'}: no such file; a table of records is a .csv, .tsv, .jsonl, .json, "
        ".parquet or .txt file"
    )
    assert message(lambda: read_records(tmp_path)).startswith(
        f"{tmp_path}: is no folder that `datasets` saved: it has no state.json and no"
    )


def test_a_frame_is_read_as_its_file(tmp_path):
    frame = pd.DataFrame(
        {
            "key": ["a", "b", "c"],
            "body": ["one", "two", "three"],
            "trained": [True, False, True],
            "copies": [1, 1, 4],
            "paraphrased": [["uno", "un"], ["dos"], []],
        }
    )
    frame.to_parquet(tmp_path / "mine.parquet")
    columns = {"id": "key", "text": "body"}
    of_file = read_records(tmp_path / "mine.parquet", columns).to_frame()
    of_frame = to_records(frame, columns=columns).to_frame()
    pd.testing.assert_frame_equal(of_frame, of_file)
    pd.testing.assert_frame_equal(to_records(of_frame).to_frame(), of_frame)
    blank = frame.assign(body=["one", " ", "three"])
    said = message(lambda: to_records(blank, "mine", columns))
    assert said.startswith("mine: row 2: body ' ' has no words; ")


@pytest.mark.parametrize(
    ("read", "call"),
    [
        (read_records, "records.to_records(frame)"),
        (read_losses, "records.to_losses(frame)"),
        (read_panel, "profiles.to_panel(frame)"),
    ],
)
def test_a_reader_of_files_names_the_function_that_takes_a_frame(read, call):
    said = message(lambda: read(pd.DataFrame({"text": ["one"]})))
    assert said.endswith(f"(str or Path); a table is taken by {call}")
