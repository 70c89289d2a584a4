"""A folder of .txt files, each a text, as a corpus, as queries and as records; names of texts."""

import gzip
from types import SimpleNamespace

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from helpers.experiments import message
from helpers.user_texts import EXAMPLE, embedded, write_lines
from palimpsest import records, tables
from palimpsest.density import text_density as densities
from palimpsest.density import texts
from palimpsest.density.kinds import SEGMENTS, TEXT_DENSITY
from palimpsest.density.segments import read_texts, segmented
from palimpsest.tables.user_files import TEXTS, wrong_path


def folder_of(folder, **files):
    folder.mkdir()
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


def test_each_file_is_a_text_whatever_its_lines(tmp_path):
    """Lines part no text; a hidden file is none; a compressed file is one."""
    folder = folder_of(tmp_path / "texts", b="c d\n\ne\n", a="a b", z="ä\n")
    (folder / ".DS_Store").write_bytes(b"\0")
    with gzip.open(folder / "q.txt.gz", "wt") as file:
        file.write("f g")
    assert list(read_texts(folder, "body")) == ["a b", "c d\n\ne", "f g", "ä"]
    cut = segmented(folder, 2, 2)
    assert cut.names == ["a", "b", "q", "z"]
    assert cut.documents == [1, 2, 2, 3, 4]
    found = records.read_records(folder)
    assert found.ids.tolist() == cut.names
    assert found.texts.tolist() == list(read_texts(folder))


WRONG = {
    "nothing": ({}, "has no .txt files; add them"),
    "another file": ({"a.txt": "a", "notes.md": "b"}, "has 'notes.md', which is no .txt file"),
    "a folder in it": ({"a.txt": "a", "more/b.txt": "b"}, "has 'more', which is no .txt file"),
    "one name": ({"a.txt": "a", "a.TXT": "b"}, "'a.TXT' and 'a.txt' have the same name"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_folder_of_anything_else_is_refused_before_any_job(tmp_path, case):
    files, said = WRONG[case]
    folder = folder_of(tmp_path / "texts")
    for name, text in files.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    assert wrong_path(str(folder), TEXTS, "a text").startswith(f"{folder}: {said}")
    assert said in message(lambda: list(read_texts(folder)))
    if files:
        assert said in message(lambda: records.read_records(folder))


def test_a_file_without_words_is_named(tmp_path):
    folder = folder_of(tmp_path / "texts", a="a", b=" \n")
    for read in (lambda path: list(read_texts(path)), records.read_records):
        assert message(lambda read=read: read(folder)).startswith(f"{folder}/b.txt: has no words")
    (folder / "b.txt").write_bytes(b"\xff")
    assert message(lambda: list(read_texts(folder))).startswith(f"{folder}/b.txt:1: not UTF-8")


def test_a_folder_needs_no_field(tmp_path):
    folder = str(folder_of(tmp_path / "texts", a="a b"))

    def found(**files):
        block = {"texts": {"mine": {**files, "field": "body"}}}
        settings = SimpleNamespace(block=lambda section: block)
        return [mistake.key for mistake in texts.mistakes(settings)]

    assert found(corpus=folder, queries=folder) == ["density/texts/mine/field"]
    table = str(write_lines(tmp_path / "q.jsonl", "a"))
    assert found(corpus=folder, queries=table) == []


def names_in(path):
    return segmented(path, 50, 40).names


def test_the_name_of_a_text_is_its_id_or_its_number(tmp_path):
    """Without an id, a line of a .txt file has its number, as in records."""
    (tmp_path / "a.jsonl").write_text('{"text": "a", "id": 7}\n\n{"text": "b"}\n')
    assert names_in(tmp_path / "a.jsonl") == ["7", "2"]
    (tmp_path / "a.csv").write_text("text,id\na,01\nb,\n")
    assert names_in(tmp_path / "a.csv") == ["01", "2"]
    (tmp_path / "a.txt").write_text("a\n\nb\n")
    assert names_in(tmp_path / "a.txt") == ["1", "3"]
    pq.write_table(pa.table({"text": ["a", "b"], "id": [5, None]}), tmp_path / "a.parquet")
    assert names_in(tmp_path / "a.parquet") == ["5", "2"]
    assert names_in(write_lines(tmp_path / "b.jsonl", "a", "b")) == ["1", "2"]
    (tmp_path / "c.jsonl").write_text('{"text": "a", "id": ["b"]}\n')
    assert message(lambda: names_in(tmp_path / "c.jsonl")).startswith(
        f"{tmp_path}/c.jsonl:1: 'id' is ['b']; must be a name"
    )


def test_a_row_of_the_density_says_which_text_it_is_of(tmp_path):
    """In the table `density` and in its query's row of `segments`."""
    queries = folder_of(tmp_path / "asked", first="to be or not to be", second="all is well")
    made = embedded(tmp_path, "ngrams", corpus=EXAMPLE / "example-corpus.jsonl", queries=queries)
    density = densities.text_density(densities.read_embedded(*made), {"gaussian": [0.1, 0.5]}, k=3)
    tables.write(tmp_path / "density.parquet", density, TEXT_DENSITY)
    read = pd.read_parquet(tmp_path / "density.parquet")
    expected = {"first": "to be or not to be", "second": "all is well"}
    assert read.groupby("id")["text"].unique().map(list).to_dict() == {
        name: [text] for name, text in expected.items()
    }
    segments = tables.read(made[0][1], SEGMENTS)
    assert dict(zip(segments["id"], segments["text"], strict=True)) == expected
